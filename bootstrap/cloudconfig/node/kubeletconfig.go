package node

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/kubeletrules"
)

// kubeletAuthority is the file that the downloader keeps the target cluster's authority in. The kubelet takes a relative path
// from the directory of its configuration.
const kubeletAuthority = "ca.crt"

// kubeadmAuthority is the file that kubeadm keeps the same authority in. No machine has it unless the CloudConfig writes it.
const kubeadmAuthority = "/etc/kubernetes/pki/ca.crt"

// InvalidKubeletConfigError means that spec.kubelet asks for what a kubelet would refuse, or for one that is open to everyone.
type InvalidKubeletConfigError struct {
	// Field is the field of the kubelet's configuration, or the flag with its dashes; empty for the whole.
	Field string
	// Message is what is wrong with it.
	Message string
}

// Error implements error.
func (e *InvalidKubeletConfigError) Error() string {
	if e.Field == "" {
		return "spec.kubelet.config " + e.Message
	}
	return fmt.Sprintf("spec.kubelet: %s %s", e.Field, e.Message)
}

// KubeletConfigFile renders the kubelet's configuration. What spec.kubelet.config has is laid over the defaults, member by
// member of objects; lists and values are replaced, and null leaves the default. It fails with an *InvalidKubeletConfigError.
//
// Fields that this program does not know pass: they may be of another version of the kubelet.
func KubeletConfigFile(o KubeletOptions) ([]byte, error) {
	for _, arg := range o.Spec.ExtraArgs {
		// An object may be older than the rule of the CRD.
		if remedy, ok := kubeletrules.OwnedFlag(arg.Name); ok {
			return nil, &InvalidKubeletConfigError{Field: "--" + arg.Name, Message: "cannot be given: " + remedy}
		}
	}
	config := kubeletDefaults(o)
	given, err := givenConfig(o.Spec)
	if err != nil {
		return nil, err
	}
	lay(config, given)
	if file, _ := lookup(config, "authentication.x509.clientCAFile"); file == kubeadmAuthority && !o.HasKubeadmAuthority {
		set(config, "authentication.x509.clientCAFile", kubeletAuthority)
	}
	for _, f := range kubeletrules.Fields() {
		if err := checkField(config, f); err != nil {
			return nil, err
		}
	}
	if problem := kubeletrules.Check(config, o.Version); problem != nil {
		return nil, &InvalidKubeletConfigError{Field: problem.Field, Message: problem.Message}
	}
	if file, ok := lookup(config, "authentication.x509.clientCAFile"); !ok || file == "" {
		return nil, &InvalidKubeletConfigError{Field: "authentication.x509.clientCAFile", Message: "must name a file"}
	}
	body, err := yaml.Marshal(config)
	if err != nil {
		return nil, errors.Wrap(err, "rendering the kubelet's configuration")
	}
	if err := yaml.Unmarshal(body, &kubeletv1beta1.KubeletConfiguration{}); err != nil {
		return nil, &InvalidKubeletConfigError{
			Message: "is not what a kubelet can read: " + strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "),
		}
	}
	return body, nil
}

// checkField holds what the configuration has in a field to the only value that is allowed, or to none.
func checkField(config map[string]any, f kubeletrules.Field) error {
	value, given := lookup(config, f.Path)
	switch {
	case f.Refused != "" && given:
		return &InvalidKubeletConfigError{Field: f.Path, Message: "cannot be set: " + f.Refused}
	case f.Fixed == nil:
		return nil
	}
	if key := lookalike(config, f.Path); key != "" {
		return &InvalidKubeletConfigError{Field: key, Message: "is written otherwise by a kubelet: see " + f.Path}
	}
	if (given || f.Preset) && value != f.Fixed {
		return &InvalidKubeletConfigError{Field: f.Path, Message: fmt.Sprintf("must be %v: %s", f.Fixed, f.Why)}
	}
	return nil
}

func kubeletDefaults(o KubeletOptions) map[string]any {
	config := map[string]any{"cgroupDriver": "systemd", "resolvConf": kubeletResolvConf, "staticPodPath": staticPods}
	set(config, "authentication.x509.clientCAFile", kubeletAuthority)
	for _, f := range kubeletrules.Fields() {
		if f.Preset {
			set(config, f.Path, f.Fixed)
		}
	}
	if o.ClusterDomain != "" {
		config["clusterDomain"] = o.ClusterDomain
	}
	if o.ClusterDNS != "" {
		config["clusterDNS"] = []any{o.ClusterDNS}
	}
	return config
}

func givenConfig(spec bootstrapv1.KubeletSpec) (map[string]any, error) {
	given := map[string]any{}
	if spec.Config == nil || len(spec.Config.Raw) == 0 {
		return given, nil
	}
	if err := json.Unmarshal(spec.Config.Raw, &given); err != nil {
		return nil, &InvalidKubeletConfigError{Message: "is not an object"}
	}
	return given, nil
}

// lay lays one object over another.
func lay(under, over map[string]any) {
	for key, value := range over {
		below, isObject := under[key].(map[string]any)
		above, both := value.(map[string]any)
		switch {
		case value == nil:
		case isObject && both:
			lay(below, above)
		default:
			under[key] = value
		}
	}
}

// lookalike returns a key on the way to a path that differs from its name in upper and lower case only, which is an error, and
// which a reader that is less exact than today's kubelets would take for it.
func lookalike(config map[string]any, path string) string {
	for _, name := range strings.Split(path, ".") {
		for key := range config {
			if key != name && strings.EqualFold(key, name) {
				return key
			}
		}
		config, _ = config[name].(map[string]any)
	}
	return ""
}

// set puts a value at a path, and objects on the way to it.
func set(config map[string]any, path string, value any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		below, ok := config[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			config[name] = below
		}
		config = below
	}
	config[names[len(names)-1]] = value
}

// lookup finds the value at a path.
func lookup(config map[string]any, path string) (any, bool) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		below, ok := config[name].(map[string]any)
		if !ok {
			return nil, false
		}
		config = below
	}
	value, ok := config[names[len(names)-1]]
	return value, ok
}
