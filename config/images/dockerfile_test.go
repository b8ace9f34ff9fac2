package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

// TestDockerfiles: each manager has one that makes what `make images` makes: compiled by the Go of go.mod, as the Makefile has it,
// for the same user.
func TestDockerfiles(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(g *WithT, name string) string {
		content, err := os.ReadFile(filepath.Join(root, name))
		g.Expect(err).NotTo(HaveOccurred())
		return string(content)
	}
	g := NewWithT(t)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(g, "go.mod"))[1]
	build := regexp.MustCompile(`(?m)^BUILD := (\S+)$`).FindStringSubmatch(read(g, "Makefile"))[1]
	g.Expect(read(g, "docs/guides/images.md")).To(MatchRegexp(`docker build [^\n]*:(v\S+) \\\n  --build-arg VERSION=v\S+ --build-arg COMMIT=`),
		"without them --version names no release")
	for _, dir := range []string{"core", "providers/aws", "providers/azure", "providers/gcp", "bootstrap/cloudconfig"} {
		t.Run(dir, func(t *testing.T) {
			g := NewWithT(t)
			text := read(g, dir+"/Dockerfile")
			g.Expect(text).To(ContainSubstring(" golang:%s AS build", version))
			g.Expect(text).To(ContainSubstring("CGO_ENABLED=0"))
			g.Expect(text).To(ContainSubstring(`-ldflags="-s -w -X %s.version=$VERSION -X %s.commit=$COMMIT"`, build, build))
			g.Expect(text).To(MatchRegexp(`-o /manager \./%s\n`, regexp.QuoteMeta(dir)))
			g.Expect(text).To(HaveSuffix("\nUSER %s\nENTRYPOINT [\"/manager\"]\n", user))
			g.Expect(text).To(ContainSubstring("docker build -f %s/Dockerfile -t millwright-%s .", dir, filepath.Base(dir)))
		})
	}
}
