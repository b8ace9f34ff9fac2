package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"millwright.dev/test/controlplane"
)

// deployed is the securityContext that each manager's Deployment has.
func deployed() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532), ReadOnlyRootFilesystem: ptr.To(true),
		AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// TestWhatAContainerMayDo: the program is this test, which prints what it sees.
func TestWhatAContainerMayDo(t *testing.T) {
	g := NewWithT(t)
	root, err := controlplane.Root()
	g.Expect(err).NotTo(HaveOccurred())
	if err := Check(filepath.Join(root, "bin", "container")); err != nil {
		t.Skip("containers cannot be created here: ", err)
	}
	image := &Image{Root: t.TempDir(), Config: v1.Config{User: "65532:65532", Entrypoint: []string{"/probe"}}}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(image.Root, "probe"), "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	data := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(data, "token"), []byte("secret"), 0o600)).To(Succeed())
	spec, err := image.Command(
		filepath.Join(
			root,
			"bin",
			"container",
		),
		&corev1.Container{SecurityContext: deployed(), Args: []string{"-a"}},
		Mount{From: data, To: "/data"},
		Mount{From: t.TempDir(), To: "/volume", Writable: true},
	)
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(t.Context(), spec.Path, spec.Args...)
	cmd.Env = []string{"A=b"}
	output, err = cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	g.Expect(strings.Split(strings.TrimSpace(string(output)), "\n")).To(ConsistOf(
		"arguments: [-a]",
		"environment: [A=b]",
		"user 65532, group 65532, process 1",
		"capabilities: effective 0000000000000000, bounding 0000000000000000, no new privileges 1",
		"files: data dev probe proc volume",
		"read /data/token: secret",
		"write /: read-only file system",
		"write /data: read-only file system",
		"write /volume: <nil>",
		"write /tmp: no such file or directory",
	))
	_, err = os.Stat(filepath.Join(data, "written"))
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

// TestDeploymentsThatDemandLess: what a restricted pod may not have is an error instead of a container stricter than the real one.
func TestDeploymentsThatDemandLess(t *testing.T) {
	image := &Image{Config: v1.Config{User: "65532:65532", Entrypoint: []string{"/manager"}}}
	for name, test := range map[string]struct {
		change  func(*corev1.SecurityContext)
		message string
	}{
		"root":            {func(s *corev1.SecurityContext) { s.RunAsUser = ptr.To[int64](0) }, "no runAsUser"},
		"no user":         {func(s *corev1.SecurityContext) { s.RunAsUser = nil }, "no runAsUser"},
		"another user":    {func(s *corev1.SecurityContext) { s.RunAsUser, s.RunAsGroup = ptr.To[int64](7), ptr.To[int64](7) }, "its Deployment as 7:7"},
		"writable":        {func(s *corev1.SecurityContext) { s.ReadOnlyRootFilesystem = nil }, "readOnlyRootFilesystem"},
		"capabilities":    {func(s *corev1.SecurityContext) { s.Capabilities.Add = []corev1.Capability{"NET_ADMIN"} }, "does not drop all"},
		"more privileges": {func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = nil }, "allowPrivilegeEscalation"},
	} {
		t.Run(name, func(t *testing.T) {
			s := deployed()
			test.change(s)
			_, err := image.Command("container", &corev1.Container{SecurityContext: s})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}
	_, err := image.Command("container", &corev1.Container{SecurityContext: deployed()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// TestWhereContainersAreForbidden: the program's own words say why.
func TestWhereContainersAreForbidden(t *testing.T) {
	g := NewWithT(t)
	program := filepath.Join(t.TempDir(), "container")
	g.Expect(os.WriteFile(program, []byte("#!/bin/sh\necho creating namespaces: operation not permitted >&2\nexit 1\n"), 0o755)).To(Succeed())
	g.Expect(Check(program)).To(MatchError(ContainSubstring("creating namespaces: operation not permitted")))
}
