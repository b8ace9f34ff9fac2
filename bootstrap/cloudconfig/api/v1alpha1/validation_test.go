package v1alpha1_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/test/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, testenv.Options{CRDs: []testenv.CRDs{testenv.CloudConfigCRDs}}, func(e *testenv.Env) (func() error, error) {
		env = e
		return nil, nil
	}))
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := bootstrapv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestValidation(t *testing.T) {
	c := newClient(t)
	for name, tc := range map[string]struct {
		spec string
		// refused is part of the message; empty when the spec is valid.
		refused string
	}{
		"empty":                       {`{}`, ""},
		"empty members":               {`{kubelet: {}, files: [], units: [], users: [], agent: {}, bootstrap: {}}`, ""},
		"everything":                  {everything, ""},
		"a relative path":             {`{files: [{path: etc/a, content: x}]}`, "spec.files[0].path"},
		"a path with dots":            {`{files: [{path: /etc/../a, content: x}]}`, "must not contain"},
		"a path that ends in a space": {`{files: [{path: "/etc/a ", content: x}]}`, "spec.files[0].path"},
		"a path with a line break":    {`{files: [{path: "/etc/a\nb", content: x}]}`, "spec.files[0].path"},
		"an empty element":            {`{files: [{path: /etc//a, content: x}]}`, "spec.files[0].path"},
		"an element that is a dot":    {`{files: [{path: /etc/./a, content: x}]}`, "must not contain"},
		"a mode with a 9":             {`{files: [{path: /a, content: x, permissions: "0944"}]}`, "permissions"},
		"a mode as a number":          {`{files: [{path: /a, content: x, permissions: 420}]}`, "permissions"},
		"a mode of two digits":        {`{files: [{path: /a, content: x, permissions: "64"}]}`, "permissions"},
		"gzip as text":                {`{files: [{path: /a, content: x, encoding: gzip}]}`, "use gzip+base64"},
		"no such encoding":            {`{files: [{path: /a, content: x, encoding: GzipBase64}]}`, "spec.files[0].encoding"},
		"readers of a Boot file":      {`{files: [{path: /a, content: x, stage: Boot, units: [{name: a.service}]}]}`, "use stage Managed"},
		"the downloader as reader":    {`{files: [{path: /a, content: x, units: [{name: cloud-config-downloader.service}]}]}`, "belongs to the controller"},
		"a template as reader":        {`{files: [{path: /a, content: x, units: [{name: a@.service}]}]}`, "name its instances"},
		"a reader without suffix":     {`{files: [{path: /a, content: x, units: [{name: a}]}]}`, "spec.files[0].units[0].name"},
		"a reader that is stopped":    {`{files: [{path: /a, content: x, units: [{name: a.service, command: stop}]}]}`, "spec.files[0].units[0].command"},
		"one reader twice":            {`{files: [{path: /a, content: x, units: [{name: a.service}, {name: a.service}]}]}`, "Duplicate value"},
		"a unit with a space":         {`{units: [{name: "a b.service"}]}`, "name"},
		"a unit with a slash":         {`{units: [{name: mnt/a.mount}]}`, "name"},
		"no such suffix":              {`{units: [{name: a.conf}]}`, "name"},
		"content of a device":         {`{units: [{name: dev-sda.device, content: x}]}`, "use dropIns"},
		"a scope as reader":           {`{files: [{path: /a, content: x, units: [{name: a.scope}]}]}`, "spec.files[0].units[0].name"},
		"a hidden drop-in":            {`{units: [{name: a.service, dropIns: [{name: .a.conf, content: x}]}]}`, "dropIns"},
		"a login of digits":           {`{users: [{name: "123"}]}`, "name"},
		"a login with a colon":        {`{users: [{name: "a:b"}]}`, "name"},
		"a login like an option":      {`{users: [{name: "-a"}]}`, "name"},
		"a private key":               {`{users: [{name: a, sshAuthorizedKeys: ["-----BEGIN OPENSSH PRIVATE KEY-----"]}]}`, "sshAuthorizedKeys"},
		"a path of a key":             {`{users: [{name: a, sshAuthorizedKeys: [/root/.ssh/id_rsa.pub]}]}`, "sshAuthorizedKeys"},
		"a directory":                 {`{files: [{path: /etc/, content: x}]}`, "spec.files[0].path"},
		"the downloader's files":      {`{files: [{path: /var/lib/cloud-config-downloader/a, content: x}]}`, "belong to the controller"},
		"the kubelet's unit":          {`{files: [{path: /etc/systemd/system/kubelet.service, content: x}]}`, "belong to the controller"},
		"a downloader drop-in":        {`{files: [{path: /etc/systemd/system/cloud-config-downloader.service.d/a.conf, content: x}]}`, "stage Boot"},
		"no content":                  {`{files: [{path: /a}]}`, "exactly one"},
		"two contents":                {`{files: [{path: /a, content: x, contentFrom: {secret: {name: s, key: k}}}]}`, "exactly one"},
		"no such mode":                {`{files: [{path: /a, content: x, permissions: "rw"}]}`, "permissions"},
		"two files of one path":       {`{files: [{path: /a, content: x}, {path: /a, content: z}]}`, "Duplicate value"},
		"no such stage":               {`{files: [{path: /a, content: x, stage: Later}]}`, "stage"},
		"a unit without suffix":       {`{units: [{name: a, content: x}]}`, "name"},
		"a unit in a directory":       {`{units: [{name: ../a.service, content: x}]}`, "name"},
		"the downloader's own unit":   {`{units: [{name: cloud-config-downloader.service, enable: false}]}`, "belongs to the controller"},
		"content of the kubelet":      {`{units: [{name: kubelet.service, content: x}]}`, "use dropIns"},
		"a flag of the controller":    {`{kubelet: {extraArgs: [{name: provider-id, value: x}]}}`, "the controller sets it"},
		"a flag with a line break":    {`{kubelet: {extraArgs: [{name: v, value: "4\nExecStart=/bin/sh"}]}}`, "value"},
		"a label's value":             {`{kubelet: {nodeLabels: {a: "b,c=d"}}}`, "nodeLabels"},
		"a taint's effect":            {`{kubelet: {taints: [{key: a, effect: Never}]}}`, "effect"},
		"a taint's key":               {`{kubelet: {taints: [{key: "a,b", effect: NoSchedule}]}}`, "key"},
		"a short life":                {`{bootstrap: {tokenTTL: 30s}}`, "between 1m and 24h"},
		"a long life":                 {`{bootstrap: {tokenTTL: 25h}}`, "between 1m and 24h"},
		"no such approver":            {`{bootstrap: {csrApproval: Nobody}}`, "csrApproval"},
		"no pause":                    {`{agent: {pollIntervalSeconds: 0}}`, "pollIntervalSeconds"},
		"a login":                     {`{users: [{name: "a b"}]}`, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var spec map[string]any
			g.Expect(yaml.Unmarshal([]byte(tc.spec), &spec)).To(Succeed())
			for kind, content := range map[string]map[string]any{
				"CloudConfig": spec, "CloudConfigTemplate": {"template": map[string]any{"spec": spec}},
			} {
				object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
				object.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind(kind))
				object.SetNamespace("default")
				object.SetGenerateName("test-")
				err := c.Create(t.Context(), object)
				if tc.refused == "" {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(tc.refused)))
				}
			}
		})
	}
}

const everything = `
kubelet:
  extraArgs: [{name: v, value: "4"}]
  nodeLabels: {example.com/pool: a}
  taints: [{key: example.com/dedicated, value: a, effect: NoExecute}]
files:
- {path: /etc/a, content: ""}
- {path: /etc/b, content: aGk=, encoding: base64, permissions: "0600", stage: Boot}
- {path: /etc/c, contentFrom: {secret: {name: s, key: k}}}
- {path: /etc/systemd/system/cloud-config-downloader.service.d/proxy.conf, content: x, stage: Boot}
units:
- {name: a.service, content: x, enable: false, command: restart, dropIns: [{name: 10-a.conf, content: z}]}
- {name: kubelet.service, dropIns: [{name: 10-a.conf, content: z}]}
users:
- {name: ops, sudo: "ALL=(ALL) NOPASSWD:ALL", groups: [wheel], sshAuthorizedKeys: [ssh-ed25519 AAAA]}
agent: {pollIntervalSeconds: 60}
bootstrap: {tokenTTL: 1h, csrApproval: ControllerManager}
`

// Names, modes and keys are accepted as systemd, chmod, useradd and ssh-keygen have them (coreos/bugs #2569).
func TestValidation_CoreOSBugs2569_NamesOfTheSystem_AreAccepted(t *testing.T) {
	c := newClient(t)
	spec := map[string]any{}
	list := func(key string, elements ...map[string]any) {
		for _, element := range elements {
			all, _ := spec[key].([]any)
			spec[key] = append(all, element)
		}
	}
	for _, name := range []string{
		`mnt-local\x2dssd.mount`, "a.service", "a.socket", "a.device", "a.mount", "a.automount", "a.swap", "a.target", "a.path",
		"a.timer", "a.slice",
		"a.scope", "proxy@.service", "proxy@b-1.service", `dev-disk-by\x2duuid-1.swap`, "dbus-org.freedesktop.x.service", "a:b_c@1:2.service",
		"-.mount", strings.Repeat("a", 247) + ".service",
	} {
		list("units", map[string]any{"name": name, "dropIns": []any{map[string]any{"name": "10 a=b~.conf", "content": "x"}}})
	}
	for i, permissions := range []string{"644", "0644", "4755", "04755", "1777", "0o600", "000"} {
		list("files", map[string]any{"path": fmt.Sprintf("/etc/%d", i), "content": "x", "permissions": permissions})
	}
	for _, path := range []string{"/etc/a b", "/etc/a=b", "/opt/~x~", "/etc/größe", `/etc/back\slash`, "/etc/..a", "/etc/...", "/a",
		"/etc/ x/y"} {
		list("files", map[string]any{"path": path, "content": "x", "units": []any{
			map[string]any{"name": `mnt-local\x2dssd.mount`}, map[string]any{"name": "a.service", "command": "reload"},
		}})
	}
	rsa := "ssh-rsa AAAAB3NzaC1yc2E" + strings.Repeat("A", 1350) + "=="
	for _, name := range []string{"jane.doe", "a", "_apt", "Jane", "svc-1", "0day", "machine$", strings.Repeat("a", 32)} {
		list("users", map[string]any{"name": name, "groups": []any{"docker.users", "sudo"}, "sshAuthorizedKeys": []any{
			rsa + " jane@example.com\n", `from="10.0.0.0/8",no-pty ` + rsa, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI\r\n",
			"ssh-rsa-cert-v01@openssh.com AAAA" + strings.Repeat("B", 4000) + " a", "ecdsa-sha2-nistp521 AAAA== b c",
			"sk-ssh-ed25519@openssh.com AAAA d",
			"# two keys\n" + rsa + "\n" + rsa + "\n",
		}})
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind("CloudConfig"))
	object.SetNamespace("default")
	object.SetGenerateName("test-")
	NewWithT(t).Expect(c.Create(t.Context(), object)).To(Succeed())
}

// A key may have a line break behind it, or be several.
func TestAuthorizedKeys_LineBreaks_AreOneKeyALine(t *testing.T) {
	user := &bootstrapv1.User{SSHAuthorizedKeys: []string{"ssh-rsa A\n", "ssh-rsa B c\r\n\nssh-rsa D", "  ssh-rsa E  "}}
	NewWithT(t).Expect(user.AuthorizedKeys()).To(Equal([]string{"ssh-rsa A", "ssh-rsa B c", "ssh-rsa D", "ssh-rsa E"}))
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	config := &bootstrapv1.CloudConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "test-"},
		Spec: bootstrapv1.CloudConfigSpec{
			Files: []bootstrapv1.File{{Path: "/a", Content: ptr.To("")}}, Units: []bootstrapv1.Unit{{Name: "a.service"}},
			Bootstrap: bootstrapv1.BootstrapSpec{CSRApproval: bootstrapv1.CSRApprovalProvider},
		},
	}
	g.Expect(newClient(t).Create(t.Context(), config)).To(Succeed())
	g.Expect(config.Spec.Files[0]).
		To(Equal(bootstrapv1.File{Path: "/a", Content: ptr.To(""), Permissions: "0644", Stage: bootstrapv1.FileStageManaged}))
	g.Expect(config.Spec.Units[0].Enabled()).To(BeTrue())
	g.Expect(config.Spec.Units[0].Command).To(Equal(bootstrapv1.UnitCommandStart))
	g.Expect(config.Spec.TokenTTL()).To(Equal(bootstrapv1.DefaultTokenTTL))
	// Defaults do not depend on the API server having set them.
	none := &bootstrapv1.CloudConfigSpec{}
	g.Expect(none.TokenTTL()).To(Equal(bootstrapv1.DefaultTokenTTL))
	g.Expect(none.PollIntervalSeconds()).To(Equal(bootstrapv1.DefaultPollIntervalSeconds))
	g.Expect(none.ProviderApproves()).To(BeTrue())
}

// What is in the user data cannot change for a machine that exists; what is downloaded can.
func TestUserDataIsImmutable(t *testing.T) {
	c := newClient(t)
	for name, tc := range map[string]struct {
		change  func(*bootstrapv1.CloudConfigSpec)
		refused string
	}{
		"a Managed file": {func(s *bootstrapv1.CloudConfigSpec) { s.Files[0].Content = ptr.To("y") }, ""},
		"one Managed file more": {func(s *bootstrapv1.CloudConfigSpec) {
			s.Files = append(s.Files, bootstrapv1.File{Path: "/c", Content: ptr.To("x")})
		}, ""},
		"a unit":                   {func(s *bootstrapv1.CloudConfigSpec) { s.Units = []bootstrapv1.Unit{{Name: "a.service", Content: "x"}} }, ""},
		"a Boot file":              {func(s *bootstrapv1.CloudConfigSpec) { s.Files[1].Content = ptr.To("y") }, "stage Boot"},
		"a Boot file leaves":       {func(s *bootstrapv1.CloudConfigSpec) { s.Files = s.Files[:1] }, "stage Boot"},
		"a Boot file gets Managed": {func(s *bootstrapv1.CloudConfigSpec) { s.Files[1].Stage = bootstrapv1.FileStageManaged }, "stage Boot"},
		"all files leave":          {func(s *bootstrapv1.CloudConfigSpec) { s.Files = nil }, "stage Boot"},
		"a user":                   {func(s *bootstrapv1.CloudConfigSpec) { s.Users[0].Sudo = "ALL=(ALL) ALL" }, "spec.users"},
		"all users leave":          {func(s *bootstrapv1.CloudConfigSpec) { s.Users = nil }, "spec.users"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config := &bootstrapv1.CloudConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "test-"},
				Spec: bootstrapv1.CloudConfigSpec{
					Files: []bootstrapv1.File{{Path: "/a", Content: ptr.To("x")}, {Path: "/b", Content: ptr.To("x"), Stage: bootstrapv1.FileStageBoot}},
					Users: []bootstrapv1.User{{Name: "ops"}},
				},
			}
			g.Expect(c.Create(t.Context(), config)).To(Succeed())
			tc.change(&config.Spec)
			err := c.Update(t.Context(), config)
			if tc.refused == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.refused)))
			}
		})
	}
}
