package kubeletrules_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"millwright.dev/bootstrap/cloudconfig/kubeletrules"
)

// Each field of KubeletConfiguration has a row, and each row is a field: a new version of Kubernetes fails here.
func TestFields_KubeletConfiguration_EveryFieldHasARow(t *testing.T) {
	g := NewWithT(t)
	var rows, lists []string
	for _, f := range kubeletrules.Fields() {
		rows = append(rows, f.Path)
		if f.Type == "list" && f.Refused == "" {
			lists = append(lists, f.Path)
		}
	}
	fields := append(leaves(reflect.TypeFor[kubeletv1beta1.KubeletConfiguration](), "", rows), lists...)
	slices.Sort(rows)
	slices.Sort(fields)
	g.Expect(rows).To(Equal(fields))
}

// leaves returns the paths of a type's fields. A list of objects that is refused is one field.
func leaves(t reflect.Type, prefix string, rows []string) (out []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		path := prefix + name
		if rest == "inline" || (field.Anonymous && name == "") {
			out = append(out, leaves(field.Type, prefix, rows)...)
			continue
		}
		inner := field.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			if slices.Contains(rows, path) && !slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, path+"[]") }) {
				out = append(out, path)
				continue
			}
			inner, path = inner.Elem(), path+"[]"
		}
		switch inner {
		case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[resource.QuantityValue]():
			out = append(out, path)
			continue
		}
		if inner.Kind() == reflect.Struct && inner.Name() != "TimeOrMetaDuration" {
			out = append(out, leaves(inner, path+".", rows)...)
		} else {
			out = append(out, path)
		}
	}
	return out
}

// The table knows each flag of the real kubelet, and honours no other.
func TestFlags_RealKubelet_EveryFlagIsKnown(t *testing.T) {
	g := NewWithT(t)
	out, err := kubelet(t, "flags")
	g.Expect(err).NotTo(HaveOccurred())
	flags, refused := strings.Fields(out), kubeletrules.RefusedFlags()
	for _, name := range flags {
		_, isRefused := refused[name]
		_, isHonoured := kubeletrules.HonouredFlags[name]
		g.Expect(isRefused != isHonoured).To(BeTrue(), "--%s must be either honoured or refused", name)
	}
	for name := range kubeletrules.HonouredFlags {
		g.Expect(flags).To(ContainElement(name))
	}
	fields := map[string]bool{}
	for _, f := range kubeletrules.Fields() {
		fields[f.Path] = true
	}
	for name, remedy := range refused {
		if field := regexp.MustCompile(`^use spec\.kubelet\.config\.([A-Za-z.]+)$`).FindStringSubmatch(remedy); field != nil {
			g.Expect(fields).To(HaveKey(field[1]), "--%s", name)
		}
	}
}

// The last column of the table of feature gates is what the real kubelet says.
func TestFeatureGates_RealKubelet_AreThoseOfTheTable(t *testing.T) {
	g := NewWithT(t)
	out, err := kubelet(t, "gates")
	g.Expect(err).NotTo(HaveOccurred())
	var known []string
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		state := map[string]string{"true": "on", "false": "off"}[words[1]]
		if words[2] == "true" {
			state = strings.ToUpper(state)
		}
		known = append(known, words[0])
		g.Expect(kubeletrules.GateState(words[0], version)).To(Equal(state), words[0])
	}
	for _, name := range kubeletrules.GateNames() {
		if kubeletrules.GateState(name, version) != "-" {
			g.Expect(known).To(ContainElement(name))
		}
	}
}

// companions are what a field needs beside itself.
var companions = map[string]string{
	"systemCgroups":                                       "cgroupRoot: /a",
	"systemReservedCgroup":                                "",
	"imageGCHighThresholdPercent":                         "imageGCLowThresholdPercent: 0",
	"imageGCLowThresholdPercent":                          "imageGCHighThresholdPercent: 100",
	"maxParallelImagePulls":                               "serializeImagePulls: false",
	"shutdownGracePeriodCriticalPods":                     "shutdownGracePeriod: 2h",
	"evictionSoft":                                        "evictionSoftGracePeriod: {SIGNAL: 1m}",
	"preloadedImagesVerificationAllowlist":                "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages",
	"cpuManagerPolicy=static":                             "kubeReserved: {cpu: 100m}",
	"memoryManagerPolicy=Static":                          "reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]",
	"memoryReservationPolicy=TieredReservation":           "featureGates: {MemoryQoS: true}",
	"enforceNodeAllocatable=system-reserved":              "systemReservedCgroup: /s",
	"enforceNodeAllocatable=system-reserved-compressible": "systemReservedCgroup: /s",
	"enforceNodeAllocatable=kube-reserved":                "kubeReservedCgroup: /k",
	"enforceNodeAllocatable=kube-reserved-compressible":   "kubeReservedCgroup: /k",
	"cgroupsPerQOS":                                       "enforceNodeAllocatable: [none]",
	"cpuManagerPolicyOptions":                             "featureGates: {CPUManagerPolicyAlphaOptions: true}",
}

// texts are values of fields whose pattern, not whose type, says what they are.
var texts = map[string][]string{
	"podLogsDir": {"/var/log/my-pods"}, "staticPodURL": {"https://example.com/pods"}, "address": {"0.0.0.0", "'::'", "10.0.0.1"},
	"healthzBindAddress": {"127.0.0.1", "'::1'"}, "clusterDomain": {"cluster.local", "k8s.example.com"}, "clusterDNS": {"[10.96.0.10]", "['fd00::a', 10.96.0.10]"},
	"allowedUnsafeSysctls": {"[net.core.somaxconn, 'kernel.msg*', kernel.shmmax, kernel.sem, fs.mqueue.msg_max]"},
	"volumeStatsAggPeriod": {"1m", "-1s"}, "containerRuntimeEndpoint": {"unix:///run/crio/crio.sock", `""`}, "imageServiceEndpoint": {"unix:///a"},
	"reservedSystemCPUs": {"0-3", "'0,2-4'"}, "qosReserved": {"{memory: 50%}"}, "reservedMemory": {"[{numaNode: 0, limits: {memory: 100Mi, hugepages-2Mi: 4Mi}}]"},
	"cpuManagerPolicyOptions":      {"{full-pcpus-only: 'true'}", "{distribute-cpus-across-numa: 'false', align-by-socket: 'true'}", "{strict-cpu-reservation: 'true'}"},
	"topologyManagerPolicyOptions": {"{prefer-closest-numa-nodes: 'true', max-allowable-numa-nodes: '16'}"},
	"showHiddenMetricsForVersion":  {"'1.35'"}, "logging.vmodule": {"[{filePattern: kubelet, verbosity: 3}]"},
	"logging.flushFrequency": {"5000000000", "5s"}, "logging.options.text.infoBufferSize": {"'0'"}, "logging.options.json.infoBufferSize": {"'0'"},
	"shutdownGracePeriodByPodPriority": {"[{priority: 0, shutdownGracePeriodSeconds: 30}]"}, "tracing.endpoint": {"localhost:4317", "unix:///a.sock"},
	"tlsCurvePreferences": {"[29, 23]"}, "featureGates": {"{NodeSwap: true, InPlacePodVerticalScalingExclusiveMemory: true}"}, "staticPodURLHeader": {"{X-A: [a, b]}"},
	"cpuCFSQuotaPeriod": {"5ms", "100ms", "1s"}, "crashLoopBackOff.maxContainerRestartPeriod": {"1s", "300s"}, "containerLogMonitorInterval": {"3s", "1m"},
	"preloadedImagesVerificationAllowlist": {"[registry.example.com/a, 'registry.example.com/b/*', busybox]"}, "memoryThrottlingFactor": {"0.5", "1.0"},
	"userNamespaces.idsPerPod": {"65536", "131072"}, "runtimeRequestTimeout": {"1m"}, "imageMinimumGCAge": {"1m", "0s"}, "imageMaximumGCAge": {"3m", "0s", "168h"},
}

// valuesOf returns values that the table allows for a field, in YAML: all of an enumeration, and the bounds of a number.
func valuesOf(f kubeletrules.Field) []string {
	if given, ok := texts[f.Path]; ok {
		return given
	}
	var out []string
	switch f.Type {
	case "boolean":
		return []string{"true", "false"}
	case "integer":
		for _, bound := range []*int64{f.Min, f.Max} {
			if bound != nil {
				out = append(out, fmt.Sprint(*bound))
			}
		}
		return append(out, fmt.Sprint(deref(f.Min)+1))
	case "duration":
		return []string{"10s", "1h30m0s", "1.5s"}
	case "quantity":
		return []string{"10Mi", "1G"}
	case "strings":
		for _, value := range f.Enum {
			out = append(out, "["+value+"]")
		}
	case "quantities":
		return []string{"{" + strings.Join(f.Enum, ": '100', ") + ": '100'}", "{cpu: 100m, memory: 1.5Gi}"}
	case "thresholds":
		for _, signal := range f.Enum {
			out = append(out, "{"+signal+": 5%}", "{"+signal+": 100Mi}", "{"+signal+": 12.5%}")
		}
	case "durations":
		return []string{"{" + strings.Join(f.Enum, ": 1m30s, ") + ": 1m30s}"}
	case "path":
		return []string{"/etc/a"}
	default:
		if len(f.Enum) > 0 {
			return f.Enum
		}
		return []string{"/a"}
	}
	return out
}

func deref(value *int64) int64 {
	if value == nil {
		return 0
	}
	return *value
}

// sampleOf writes spec.kubelet with one field, and what it needs.
func sampleOf(f kubeletrules.Field, value string) string {
	config := value
	names := strings.Split(f.Path, ".")
	for i := len(names) - 1; i >= 0; i-- {
		config = "{" + names[i] + ": " + config + "}"
	}
	more := []string{companions[f.Path], companions[f.Path+"="+strings.Trim(value, "[]")]}
	if f.Gate != "" {
		more = append(more, "featureGates: {"+f.Gate+": true}")
	}
	for _, line := range more {
		if line != "" {
			signal, _, _ := strings.Cut(strings.Trim(value, "{}"), ":")
			config = strings.TrimSuffix(config, "}") + ", " + strings.ReplaceAll(line, "SIGNAL", signal) + "}"
		}
	}
	return "{config: " + config + "}"
}

// What the table allows in a field, the API server accepts and the real kubelet starts with.
func TestFields_AllowedValues_AreAcceptedByTheRealKubelet(t *testing.T) {
	for _, f := range kubeletrules.Fields() {
		if f.Refused != "" || f.Fixed != nil || strings.Contains(f.Path, "[]") {
			continue
		}
		t.Run(f.Path, func(t *testing.T) {
			t.Parallel()
			for _, value := range valuesOf(f) {
				expectAccepted(t, sampleOf(f, value))
			}
		})
	}
}

// wrongValuesOf returns values that a kubelet refuses in a field, or reads as another type.
func wrongValuesOf(f kubeletrules.Field) []string {
	switch f.Type {
	case "boolean":
		return []string{"'true'", "1", "yes-please", "[true]"}
	case "integer":
		out := []string{"many", "'5'", "1.5", "[1]"}
		if f.Min != nil {
			out = append(out, fmt.Sprint(*f.Min-1))
		}
		if f.Max != nil {
			out = append(out, fmt.Sprint(*f.Max+1))
		}
		return out
	case "number":
		return []string{"half", "2", "0", "-0.5"}
	case "duration":
		return []string{"10", "10 seconds", "soon", "-5m", "1d", "''"}
	case "quantity":
		return []string{"10", "lots", "10 Mi", "10MB", "-1Gi"}
	case "strings", "integers", "list":
		return []string{"a", "{a: b}", "[{a: {b: c}}]"}
	case "quantities":
		return []string{"{cpu: 1}", "{memory: lots}", "{gpu: '1'}", "{cpu: '-1'}", "[cpu]"}
	case "thresholds":
		return []string{"{memory.available: lots}", "{memory.available: 101%}", "{memory.free: 5%}", "{memory.available: 5}", "{memory.available: -1Gi}",
			"{memory.available: 1Gb}", "{memory.available: ''}"}
	case "durations":
		return []string{"{memory.available: soon}", "{memory.free: 1m}", "{memory.available: 90}"}
	case "gates":
		return []string{"{NodeSwapp: true}", "{NodeSwap: 'true'}", "NodeSwap=true", "[NodeSwap]"}
	case "map", "headers":
		return []string{"{a: {b: c}}", "a", "[a]"}
	case "path":
		return []string{"relative/path", "5", "[/a]"}
	case "looseInt":
		return []string{"[1]", "{a: b}"}
	}
	out := []string{"5", "[a]", "{a: b}"}
	if len(f.Enum) > 0 {
		out = append(out, "nonsense", strings.ToUpper(f.Enum[0])+"X")
	}
	return out
}

// What a kubelet refuses in a field, the API server refuses, and names the field.
func TestFields_WrongValues_AreRefused(t *testing.T) {
	for _, f := range kubeletrules.Fields() {
		if strings.Contains(f.Path, "[]") {
			continue
		}
		t.Run(f.Path, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			for _, value := range wrongValuesOf(f) {
				g.Expect(create(t, parse(t, sampleOf(f, value)))).To(MatchError(ContainSubstring(f.Path)), value)
			}
			if f.Refused != "" {
				valid := map[kubeletrules.Type]string{"list": "[]", "string": "/a"}[f.Type]
				g.Expect(create(t, parse(t, sampleOf(f, valid)))).To(MatchError(ContainSubstring("cannot be set: " + f.Refused)))
			}
		})
	}
}
