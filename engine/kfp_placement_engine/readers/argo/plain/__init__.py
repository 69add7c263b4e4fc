"""Plain Workflows of Argo, which KFP has not made: their templates, tasks, leaves and limits."""
