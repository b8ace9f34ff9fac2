package machines

import (
	"context"
	"regexp"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/naming"
)

// CreatorLabel is on what the core creates or adopts: on a MachineSet the UID of its MachineDeployment, on a Machine that of the
// MachineDeployment, or of the MachineSet if there is none. By it objects are counted whose other labels or owner were changed. NoCreator
// as its value excludes an object that a user keeps.
const CreatorLabel = "safety.millwright.dev/created-by"

// NoCreator is the value of CreatorLabel for an object that does not count.
const NoCreator = "none"

// Margin is the number of objects that a controller may create beyond those that it needs, since users release some on purpose.
const Margin = 3

// Creator is a MachineDeployment, or a MachineSet without one.
type Creator struct {
	Name string
	// UIDs are those of the object itself and of its sets.
	UIDs map[types.UID]bool
}

// NewCreator returns the creator for an object, and for the sets that it controls.
func NewCreator(object metav1.Object, sets ...*clusterv1.MachineSet) *Creator {
	c := &Creator{Name: object.GetName(), UIDs: map[types.UID]bool{object.GetUID(): true}}
	for _, set := range sets {
		c.UIDs[set.UID] = true
	}
	return c
}

// Counts reports whether the creator has created an object that is neither being deleted nor preserved. The controller or the label is
// enough: a policy may change either. An object with neither counts by its name.
func (c *Creator) Counts(object metav1.Object) bool {
	if !object.GetDeletionTimestamp().IsZero() {
		return false
	}
	if _, preserved := object.GetLabels()[PreservedLabel]; preserved {
		return false
	}
	owner := metav1.GetControllerOf(object)
	by, labelled := object.GetLabels()[CreatorLabel]
	if owner != nil || labelled {
		return owner != nil && c.UIDs[owner.UID] || c.UIDs[types.UID(by)]
	}
	return generatedFrom(c.Name, object.GetName())
}

// CreatorOf returns the value of CreatorLabel for what a MachineSet creates or adopts.
func CreatorOf(set *clusterv1.MachineSet) string {
	if owner := metav1.GetControllerOf(set); owner != nil && owner.Kind == "MachineDeployment" {
		return string(owner.UID)
	}
	return string(set.UID)
}

// ends matches what follows the name of a MachineDeployment or MachineSet in the names of what was created for it.
var ends = regexp.MustCompile(`^(-[` + naming.Letters + `]{5}){1,2}$`)

func generatedFrom(name, generated string) bool {
	// The names of Machines are cut so that their ends stay random.
	if start := naming.MaxLength - naming.RandomLength; len(generated) == naming.MaxLength && len(name) >= start {
		return generated[:start] == name[:start]
	}
	return len(generated) > len(name) && generated[:len(name)] == name && ends.MatchString(generated[len(name):])
}

// pageSize bounds what one answer of the API server holds.
const pageSize = 1000

// EachLive passes the metadata of all objects of a kind in a namespace, as the API server has them, page by page. kind ends in List.
func EachLive(ctx context.Context, reader client.Reader, namespace, kind string, do func(*metav1.PartialObjectMetadata)) error {
	next := ""
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
		if err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return errors.Wrapf(err, "counting: reading the %s of namespace %s from the API server", kind, namespace)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}
