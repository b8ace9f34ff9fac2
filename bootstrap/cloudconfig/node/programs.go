package node

// Programs are those that the scripts run on the machine, beside the shell's own: what an image must have.
var Programs = []string{
	"base64", "cat", "chmod", "cp", "curl", "cut", "date", "df", "grep", "gzip", "journalctl", "ln", "mkdir", "mv", "od", "readlink",
	"rm", "sed", "sh", "sha256sum", "sleep", "sort", "stat", "sync", "sysctl", "systemctl", "tail", "tar", "timeout", "tr",
}
