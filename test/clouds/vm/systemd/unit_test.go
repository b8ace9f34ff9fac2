package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// writeUnits creates a root with the files, by their paths below etc/systemd/system.
func writeUnits(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, "etc/systemd/system", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLoadUnit(t *testing.T) {
	g := NewWithT(t)
	root := writeUnits(t, map[string]string{
		"a.service": `# comment
[Unit]
Description=The %N unit
After=network.target
StartLimitIntervalSec=0
[Service]
Type=simple
Environment=A=1 "B=two words"
EnvironmentFile=-/etc/a.env
ExecStartPre=-/bin/pre --x
ExecStart=/bin/a --one \
   --two=%n "quoted word" \
   'single $X'
Restart=on-failure
RestartSec=1min 30s
RuntimeMaxSec=1500ms
[Install]
WantedBy=multi-user.target
`,
		"a.service.d/10-more.conf":  "[Service]\nEnvironment=C=3\n",
		"a.service.d/20-again.conf": "[Service]\nExecStart=\nExecStart=/bin/b\nRestart=always\n",
		"a.service.d/ignored.txt":   "[Service]\nRestart=no\n",
	})
	u, err := loadUnit(root, "a.service")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.description).To(Equal("The a unit"))
	g.Expect(u.environment).To(Equal([]string{"A=1", "B=two words", "C=3"}))
	g.Expect(u.environmentFiles).To(Equal([]string{"-/etc/a.env"}))
	g.Expect(u.startPre).To(Equal([]command{{words: []string{"/bin/pre", "--x"}, ignoreFailure: true}}))
	g.Expect(u.start).To(Equal([]command{{words: []string{"/bin/b"}}}))
	g.Expect(u.restart).To(Equal("always"))
	g.Expect(u.restartDelay).To(Equal(90 * time.Second))
	g.Expect(u.runtimeMax).To(Equal(1500 * time.Millisecond))
	g.Expect(u.startInterval).To(Equal(infinite))
	g.Expect(u.wantedBy).To(Equal([]string{"multi-user.target"}))
	g.Expect(u.ignored).To(Equal([]string{"After"}))

	_, err = loadUnit(root, "b.service")
	g.Expect(err).To(MatchError(errNotFound))
}

func TestContinuedLines(t *testing.T) {
	g := NewWithT(t)
	settings, err := parseFile(strings.NewReader("[Service]\nExecStart=/bin/a \\\n# a comment within\n  b \\\n  'c d'\nType=simple\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(settings).To(HaveLen(2))
	words, err := splitWords(settings[0].value)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(words).To(Equal([]string{"/bin/a", "b", "c d"}))
}

func TestBadUnits(t *testing.T) {
	for name, content := range map[string]string{
		"no start":       "[Service]\nType=simple\n",
		"two starts":     "[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n",
		"type":           "[Service]\nType=notify\nExecStart=/bin/a\n",
		"restart":        "[Service]\nRestart=sometimes\nExecStart=/bin/a\n",
		"span":           "[Service]\nRestartSec=soon\nExecStart=/bin/a\n",
		"quote":          "[Service]\nExecStart=/bin/a 'b\n",
		"no section":     "ExecStart=/bin/a\n",
		"no assignment":  "[Service]\nnonsense\n",
		"only a prefix":  "[Service]\nExecStart=- \n",
		"burst no count": "[Unit]\nStartLimitBurst=x\n[Service]\nExecStart=/bin/a\n",
	} {
		_, err := loadUnit(writeUnits(t, map[string]string{"a.service": content}), "a.service")
		NewWithT(t).Expect(err).To(HaveOccurred(), name)
	}
}

func TestExpand(t *testing.T) {
	g := NewWithT(t)
	env := []string{"ARGS=--a  --b", "NAME=old", "NAME=new", "EMPTY="}
	for word, want := range map[string][]string{
		"$ARGS": {"--a", "--b"}, "${ARGS}": {"--a  --b"}, "--name=${NAME}": {"--name=new"}, "$EMPTY": {}, "${EMPTY}": {""}, "$$NAME": {"$NAME"},
		"x$NAME": {"x$NAME"},
	} {
		g.Expect(expand(word, env)).To(Equal(want), word)
	}
}

func TestSpans(t *testing.T) {
	g := NewWithT(t)
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "100ms": 100 * time.Millisecond, "2min": 2 * time.Minute, "1h 5s": time.Hour + 5*time.Second,
		"0.5": time.Second / 2, "infinity": infinite,
	} {
		g.Expect(parseSpan(text)).To(Equal(want), text)
	}
}
