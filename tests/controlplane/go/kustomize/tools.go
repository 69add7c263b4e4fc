//go:build tools

// Package tools keeps what is built in go.mod.
package tools

import _ "sigs.k8s.io/kustomize/kustomize/v5"
