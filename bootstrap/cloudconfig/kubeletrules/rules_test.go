package kubeletrules_test

import (
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

// What the table allows in a field, the API server accepts and the real kubelet starts with.
func TestFields_AllowedValues_AreAcceptedByTheRealKubelet(t *testing.T) {
	for _, f := range kubeletrules.Fields() {
		if f.Refused != "" || f.Fixed != nil || strings.Contains(f.Path, "[]") {
			continue
		}
		t.Run(f.Path, func(t *testing.T) {
			t.Parallel()
			for _, value := range valuesOf(f) {
				expectAccepted(t, parse(t, sampleOf(f, value)))
			}
		})
	}
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
