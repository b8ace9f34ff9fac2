package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		args, err string
		providers []string
		idle      time.Duration
	}{
		"ours by default":                      {providers: []string{"ours"}, idle: 3 * time.Minute},
		"a longer window beside another":       {args: "-providers capa,ours", providers: []string{"capa", "ours"}, idle: 22 * time.Minute},
		"the requested window":                 {args: "-providers ours,capa -idle 20m", providers: []string{"ours", "capa"}, idle: 20 * time.Minute},
		"an unknown provider":                  {args: "-providers ours,theirs", err: `no "theirs"`},
		"a provider twice, its logs would mix": {args: "-providers ours,ours", err: "or twice"},
		"no Machines":                          {args: "-n 0", err: "at least one Machine"},
		"an unexpected argument":               {args: "300", err: `unexpected argument "300"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, err := parse(strings.Fields(test.args))
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(o.providers).To(Equal(test.providers))
			g.Expect(o.idle).To(Equal(test.idle))
		})
	}
}
