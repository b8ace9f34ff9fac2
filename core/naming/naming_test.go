package naming

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// timeout is for what must happen at once.
const timeout = time.Minute

// TestATemplateThatNeverEnds: anyone who may write a MachineSet keeps no worker of the core busy, and fills no memory.
func TestATemplateThatNeverEnds(t *testing.T) {
	tests := map[string]struct{ text, names string }{
		"a range":                {"{{ range 9999999999999 }}{{ end }}{{ .random }}", "range"},
		"a range in a branch":    {"{{ if .random }}x{{ else }}{{ range 9999999999999 }}{{ end }}{{ end }}", "range"},
		"a template":             {`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, "define"},
		"an unused template":     {`{{ .random }}{{ define "a" }}x{{ end }}`, "define"},
		"a template of itself":   {`{{ .random }}{{ template "name" . }}`, "template"},
		"a block":                {`{{ block "a" . }}{{ end }}`, "define"},
		"a width":                {`{{ .random }}{{ printf "%0999999d" 1 }}`, "printf"},
		"a width of its own":     {`{{ .random }}{{ printf "%*d" 999999 1 }}`, "printf"},
		"a width in parts":       {`{{ .random }}{{ printf (print "%0999" "999d") 1 }}`, "printf"},
		"a width by a pipe":      {`{{ .random }}{{ "%0999999d" | printf }}`, "printf"},
		"a width in a field":     {`{{ .random }}{{ (print (printf "%0999999d" 1)).x }}`, "printf"},
		"a width in a condition": {`{{ if printf "%0999999d" 1 }}{{ .random }}{{ end }}`, "printf"},
		"a variable":             {`{{ $a := .random }}{{ $a = print $a $a $a $a }}{{ $a }}`, "$a"},
		"a variable in if":       {`{{ if $a := .random }}{{ $a }}{{ end }}`, "$a"},
		"dots":                   {`{{ with print .random .random }}{{ with print . . }}{{ . }}{{ end }}{{ end }}`, "with"},
		"what grows each time":   {`{{ .random }}{{ "'" | js | js | js }}`, "js"},
		"entities":               {`{{ .random }}{{ html "&" }}`, "html"},
		"a call":                 {`{{ call .random }}`, "call"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ended := make(chan error, 1)
			go func() {
				parsed, err := Parse(test.text)
				if err == nil {
					_, err = parsed.Make("c", "s", "bcdfg")
				}
				ended <- err
			}()
			g.Eventually(ended, timeout).Should(Receive(MatchError(HavePrefix(test.names))))
		})
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"{{ .machineSet.name }}-{{ .random }}":                    "s-bcdfg",
		"{{ .cluster.name }}-{{ $.random }}-x{{/* a comment */}}": "c-bcdfg-x",
		`{{ printf "%s-%s" .cluster.name .random }}`:              "c-bcdfg",
		`{{ if gt (len .cluster.name) 20 }}{{ slice .cluster.name 0 20 }}{{ else if eq .cluster.name "c" }}d{{ end }}{{ .random }}`: "dbcdfg",
		`{{ .random | print "a" | printf "%s-%d%%" }}`: "abcdfg-%!d(MISSING)%",
	} {
		g := NewWithT(t)
		parsed, err := Parse(text)
		g.Expect(err).NotTo(HaveOccurred(), text)
		g.Expect(parsed.Make("c", "s", "bcdfg")).To(Equal(want), text)
	}
}

func TestNamesAreCut(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Cut(strings.Repeat("w", MaxLength), "bcdfg")).To(Equal(strings.Repeat("w", MaxLength)))
	g.Expect(Cut(strings.Repeat("w", MaxLength+1), "bcdfg")).To(Equal(strings.Repeat("w", MaxLength-RandomLength) + "bcdfg"))
}

// TestNoTemplate: what cannot be read, and what is empty.
func TestNoTemplate(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{"{{ .random", "{{ nothing }}", "{{ $a }}"} {
		_, err := Parse(text)
		g.Expect(err).To(HaveOccurred(), text)
	}
	parsed, err := Parse("{{ .machine.name }}")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = parsed.Make("c", "s", "bcdfg")
	g.Expect(err).To(HaveOccurred())
}
