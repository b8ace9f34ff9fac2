package behaviour

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	strictyaml "sigs.k8s.io/yaml"
)

const (
	// RoleAnnotation marks the object of a sample that is verified, where its kind does not show it.
	RoleAnnotation = "conformance.millwright.dev/role"
	// RoleSubject is the value of RoleAnnotation for it.
	RoleSubject = "subject"

	// Placeholders in a sample: the names of a case's Cluster and of the namespace, and a text that must never be disclosed.
	clusterPlaceholder   = "${CLUSTER_NAME}"
	namespacePlaceholder = "${NAMESPACE}"
	markerPlaceholder    = "${MARKER}"
)

// Sample is what a run creates its objects from: a stream of YAML documents.
//
// One is of the provider's kind, or of its template kind. A Cluster and a Machine may set fields for the specs of those of the suite,
// such as a version and a failure domain. Documents that contain ${CLUSTER_NAME} are created for the Cluster of each case, all others
// once. ${NAMESPACE} is replaced by the namespace, and ${MARKER} by a text for Secrets that must never be disclosed.
type Sample struct {
	// Subject has the spec of the objects that are verified, Template that of their template; nil if the sample has none.
	Subject, Template *unstructured.Unstructured
	cluster, machine  *unstructured.Unstructured
	// once and perCluster are the other documents.
	once, perCluster []string
}

// ParseSample reads a sample. The verified kind is the one with RoleAnnotation, or the only one whose name ends with suffix,
// or has a template of such a name.
func ParseSample(content []byte, suffix string) (*Sample, error) {
	s := &Sample{}
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Wrap(err, "reading the sample")
		}
		object, err := decode(string(document))
		if err != nil {
			return nil, errors.Wrap(err, "reading the sample")
		}
		if object == nil {
			continue
		}
		if err := s.add(object, string(document), suffix); err != nil {
			return nil, err
		}
	}
	if err := s.complete(); err != nil {
		return nil, err
	}
	if _, err := s.clusterSpec(); err != nil {
		return nil, err
	}
	_, err := s.machineSpec()
	return s, err
}

func (s *Sample) add(object *unstructured.Unstructured, document, suffix string) error {
	kind, group := object.GetKind(), object.GroupVersionKind().Group
	core := group == clusterv1.GroupVersion.Group
	var place **unstructured.Unstructured
	switch {
	case object.GetAnnotations()[RoleAnnotation] == RoleSubject, !core && strings.HasSuffix(kind, suffix):
		place = &s.Subject
	case !core && strings.HasSuffix(kind, suffix+"Template"):
		place = &s.Template
	case core && kind == "Cluster":
		place = &s.cluster
	case core && kind == "Machine":
		place = &s.machine
	case strings.Contains(document, clusterPlaceholder):
		s.perCluster = append(s.perCluster, document)
		return nil
	default:
		s.once = append(s.once, document)
		return nil
	}
	if *place != nil {
		return errors.Errorf("the sample has two candidates, one of them %s %s: mark the one to verify with the annotation %s: %s",
			kind, object.GetName(), RoleAnnotation, RoleSubject)
	}
	*place = object
	return nil
}

func (s *Sample) complete() error {
	switch {
	case s.Subject == nil && s.Template == nil:
		return errors.Errorf("the sample has no object of the provider: mark the one to verify with the annotation %s: %s",
			RoleAnnotation, RoleSubject)
	case s.Subject == nil:
		spec, _, err := unstructured.NestedMap(s.Template.Object, "spec", "template", "spec")
		if err != nil {
			return errors.Wrap(err, "reading the template of the sample")
		}
		s.Subject = &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		s.Subject.SetAPIVersion(s.Template.GetAPIVersion())
		s.Subject.SetKind(strings.TrimSuffix(s.Template.GetKind(), "Template"))
	case s.Template == nil:
		s.Template = &unstructured.Unstructured{Object: map[string]any{}}
		s.Template.SetAPIVersion(s.Subject.GetAPIVersion())
		s.Template.SetKind(s.Subject.GetKind() + "Template")
		spec, _, _ := unstructured.NestedMap(s.Subject.Object, "spec")
		if err := unstructured.SetNestedMap(s.Template.Object, spec, "spec", "template", "spec"); err != nil {
			return errors.Wrap(err, "creating a template from the sample")
		}
	}
	return nil
}

// clusterSpec and machineSpec are the specs of the core's objects in the sample.
func (s *Sample) clusterSpec() (spec clusterv1.ClusterSpec, err error) {
	err = specInto(s.cluster, &spec)
	return spec, err
}

func (s *Sample) machineSpec() (spec clusterv1.MachineSpec, err error) {
	err = specInto(s.machine, &spec)
	return spec, err
}

// infrastructure is the reference of a case's Cluster: to the sample's object for each Cluster, of the kind to which
// the sample's Cluster refers; empty if there is no such object.
func (s *Sample) infrastructure(
	ref clusterv1.ContractVersionedObjectReference, cluster string,
) clusterv1.ContractVersionedObjectReference {
	for _, document := range s.perCluster {
		object, err := decode(filled(document, cluster, "", ""))
		if err == nil && object.GetKind() == ref.Kind && object.GroupVersionKind().Group == ref.APIGroup {
			ref.Name = object.GetName()
			return ref
		}
	}
	return clusterv1.ContractVersionedObjectReference{}
}

// Beside returns the kinds of the sample's objects other than those of the provider and of the core.
func (s *Sample) Beside() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, document := range slices.Concat(s.once, s.perCluster) {
		object, err := decode(document)
		if err == nil && object != nil && !slices.Contains(kinds, object.GroupVersionKind().GroupKind()) {
			kinds = append(kinds, object.GroupVersionKind().GroupKind())
		}
	}
	return kinds
}

func specInto(object *unstructured.Unstructured, spec any) error {
	if object == nil {
		return nil
	}
	if object.GetAPIVersion() != clusterv1.GroupVersion.String() {
		return errors.Errorf("the %s of the sample is of %s: use one of %s", object.GetKind(), object.GetAPIVersion(), clusterv1.GroupVersion)
	}
	content, err := json.Marshal(object.Object["spec"])
	if err != nil {
		return errors.Wrapf(err, "reading the %s of the sample", object.GetKind())
	}
	if err := strictyaml.UnmarshalStrict(content, spec); err != nil { // It names fields of a wrong type.
		return errors.Wrapf(err, "reading spec of the %s of the sample", object.GetKind())
	}
	fields, _ := object.Object["spec"].(map[string]any)
	// An unknown field, also one of another case, would be dropped silently.
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, spec, true)
	return errors.Wrapf(err, "reading spec of the %s of the sample", object.GetKind())
}

// filled replaces the placeholders of all values of an object.
func filled(document, cluster, namespace, marker string) string {
	return strings.NewReplacer(clusterPlaceholder, cluster, namespacePlaceholder, namespace, markerPlaceholder, marker).Replace(document)
}

func decode(document string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		return nil, err
	}
	if len(object.Object) == 0 {
		return nil, nil
	}
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, errors.New("a document has no kind or apiVersion")
	}
	return object, nil
}

// secretValues returns the values of the sample's Secrets, except those too short to be recognized.
func secretValues(object *unstructured.Unstructured) []string {
	if object.GetKind() != "Secret" || object.GroupVersionKind().Group != corev1.GroupName {
		return nil
	}
	var values []string
	for _, field := range []string{"stringData", "data"} {
		entries, _, _ := unstructured.NestedStringMap(object.Object, field)
		for _, value := range entries {
			if decoded, err := base64.StdEncoding.DecodeString(value); field == "data" && err == nil && len(decoded) >= shortest {
				values = append(values, string(decoded))
			}
			if len(value) >= shortest {
				values = append(values, value)
			}
		}
	}
	return values
}

// shortest is the minimum length of a secret that is searched for.
const shortest = 12
