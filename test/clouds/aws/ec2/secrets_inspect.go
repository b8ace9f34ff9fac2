package ec2

import (
	"encoding/base64"
	"maps"

	"millwright.dev/test/clouds/aws/simapi"
)

// Secrets are the secrets of the account that are not deleted, also those whose deletion is scheduled, without their values.
func (s *Server) Secrets() []simapi.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []simapi.Secret
	for _, x := range s.secrets {
		if !x.forced {
			out = append(out, simapi.Secret{Name: x.name, ARN: x.arn, Tags: maps.Clone(x.tags), Scheduled: !x.gone.IsZero()})
		}
	}
	return out
}

// SecretValue is the current value of a secret; nil if there is none of the name.
func (s *Server) SecretValue(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.secret(name)
	if found == nil || found.forced {
		return nil
	}
	value, _ := base64.StdEncoding.DecodeString(found.versions[found.current])
	return value
}

// PutSecret creates a secret as another user, or changes the tags of one.
func (s *Server) PutSecret(name string, value []byte, tags map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.secret(name)
	if found == nil {
		s.seq++
		found = &secret{name: name, current: "v", created: s.clock.Now(), seq: s.seq,
			arn: "arn:aws:secretsmanager:" + s.options.Region + ":" + s.options.AccountID + ":secret:" + name + "-" + s.ids.uuid()[:6]}
		s.secrets = append(s.secrets, found)
	}
	found.versions = map[string]string{found.current: base64.StdEncoding.EncodeToString(value)}
	found.tags = maps.Clone(tags)
}

// ScheduleSecret schedules the deletion of a secret, as a user would in the console.
func (s *Server) ScheduleSecret(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.secret(name); found != nil {
		found.gone = s.clock.Now().AddDate(0, 0, 30)
	}
}
