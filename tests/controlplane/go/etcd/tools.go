//go:build tools

// Package tools keeps what is built in go.mod.
package tools

import _ "go.etcd.io/etcd/server/v3"
