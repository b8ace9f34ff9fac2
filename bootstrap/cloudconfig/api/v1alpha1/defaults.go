package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"
)

const (
	// DefaultPollIntervalSeconds is the default of agent.pollIntervalSeconds.
	DefaultPollIntervalSeconds int32 = 30
	// DefaultTokenTTL is the default of bootstrap.tokenTTL; it is what Cluster API's kubeadm provider uses.
	DefaultTokenTTL = 15 * time.Minute
	// DefaultPermissions is the default of files[].permissions.
	DefaultPermissions = "0644"
)

// TokenTTL returns the lifetime of bootstrap tokens, with its default.
func (s *CloudConfigSpec) TokenTTL() time.Duration {
	if s.Bootstrap.TokenTTL == nil || s.Bootstrap.TokenTTL.Duration <= 0 {
		return DefaultTokenTTL
	}
	return s.Bootstrap.TokenTTL.Duration
}

// PollIntervalSeconds returns the poll interval after the join, with its default.
func (s *CloudConfigSpec) PollIntervalSeconds() int32 {
	if s.Agent.PollIntervalSeconds <= 0 {
		return DefaultPollIntervalSeconds
	}
	return s.Agent.PollIntervalSeconds
}

// ProviderApproves reports whether this provider approves the kubelet's certificate requests.
func (s *CloudConfigSpec) ProviderApproves() bool {
	return s.Bootstrap.CSRApproval != CSRApprovalControllerManager
}

// Enabled returns whether the unit starts at boot, with its default.
func (u *Unit) Enabled() bool { return ptr.Deref(u.Enable, true) }

// CommandOrDefault returns the unit's command, with its default.
func (u *Unit) CommandOrDefault() UnitCommand {
	if u.Command == "" {
		return UnitCommandStart
	}
	return u.Command
}

// Mode returns the octal mode of the file with four digits, with its default.
func (f *File) Mode() string {
	mode, err := strconv.ParseUint(strings.TrimPrefix(f.Permissions, "0o"), 8, 12)
	if err != nil {
		return DefaultPermissions
	}
	return fmt.Sprintf("%04o", mode)
}

// AuthorizedKeys returns the user's keys, one in a line, without empty lines.
func (u *User) AuthorizedKeys() []string {
	var out []string
	for _, text := range u.SSHAuthorizedKeys {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

// AtBoot reports whether the file is part of the user data.
func (f *File) AtBoot() bool { return f.Stage == FileStageBoot }
