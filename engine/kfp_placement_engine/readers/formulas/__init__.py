"""Expression languages of run files: KFP's CEL, Argo's `when`, `depends` and `{{=...}}`."""
