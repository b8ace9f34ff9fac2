package orphans

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

// Claim is what one object claims of the cloud. All of it but the name may be forged by anyone who may write the object; a forged claim
// keeps something alive, and ends nothing.
type Claim struct {
	// Handle of the instance, as the reconciler has it.
	Handle driver.Handle
	// UID of the object, Namespace that it is in, and the name of its Cluster.
	UID       types.UID
	Namespace string
	Cluster   string
	// Settled is true if the object is this provider's, neither paused nor being deleted, so that what it owns may be marked again.
	Settled bool
	// Allowed is true if the object may use the identity that it names; what one that may not names is not listed.
	Allowed bool
}

// Claims are those of all objects of the kind, of any watch label.
type Claims struct {
	providerIDs, tokens map[string]bool
	uids                map[types.UID]bool
	// byOwner has the claim of the object of a name, and of the digest of its name.
	byOwner map[string]Claim
	// scopes are those that the objects name.
	scopes map[driver.Scope]bool
	// instances are the provider IDs of what the cloud lists with the UID of an object in its mark.
	instances map[types.UID]string
}

func newClaims() Claims {
	return Claims{
		providerIDs: map[string]bool{}, tokens: map[string]bool{}, uids: map[types.UID]bool{},
		byOwner: map[string]Claim{}, scopes: map[driver.Scope]bool{}, instances: map[types.UID]string{},
	}
}

func (c Claims) add(claim Claim) {
	h := claim.Handle
	c.providerIDs[h.ProviderID], c.tokens[h.Token] = true, true
	c.uids[h.OwnerUID], c.uids[claim.UID] = true, true
	c.byOwner[h.Owner], c.byOwner[driver.OwnerDigest(h.Owner)] = claim, claim
	if claim.Allowed {
		c.scopes[h.Scope] = true
	}
}

// claim returns whether an object may mean the instance: by its provider ID or its token, or because the mark has its UID or its name.
func (c Claims) claim(f Found) bool {
	named, ok := c.byOwner[f.Owner]
	return f.ProviderID != "" && c.providerIDs[f.ProviderID] || f.Token != "" && c.tokens[f.Token] ||
		f.OwnerUID != "" && c.uids[f.OwnerUID] || f.Owner != "" && ok && !c.hasAnother(named, f)
}

// hasAnother returns whether the object that has the name of the mark, and does not name this instance, has one of its own and so cannot
// mean this one: an object has one instance in all its life. So the name is that of an object before it, which was removed by force. The
// object must have launched its instance itself, as the mark in the cloud shows: what is written in the object may be forged, and what was
// moved has marks of other UIDs. What is no instance may belong to that of the object.
func (c Claims) hasAnother(named Claim, f Found) bool {
	own := named.Handle.ProviderID
	return f.Kind == kindInstance && named.Settled && own != "" && c.instances[named.UID] == own
}

// list notes what the cloud lists.
func (c Claims) list(found []Found) {
	for _, f := range found {
		if f.Kind == kindInstance && !hasEnded(f.State) {
			c.instances[f.OwnerUID] = f.ProviderID
		}
	}
}

// pageSize is how many objects are read at a time.
const pageSize = 500

// readTimeout bounds the reading of everything.
const readTimeout = 5 * time.Minute

// read reads all objects and Clusters from the API server itself. If any of it cannot be read, nothing is known.
func (c *Collector) read(parent context.Context) (*World, error) {
	ctx, cancel := context.WithTimeout(parent, readTimeout)
	defer cancel()
	denies := func(in driver.Scope, namespace string) bool { return !c.mayUse(parent, in, namespace) }
	w := &World{Grace: c.grace(), Clusters: map[types.UID]Cluster{}, Claims: newClaims(), Denies: denies}
	w.NameLimit = c.Cloud.Traits().NameLimit
	err := c.readAll(ctx, c.NewList, func(obj client.Object) error {
		w.Claims.add(c.Claim(ctx, obj))
		return nil
	})
	if err != nil {
		return nil, errors.Wrapf(err, "listing each %s", c.Kind)
	}
	err = c.readAll(ctx, func() client.ObjectList { return &clusterv1.ClusterList{} }, func(obj client.Object) error {
		cluster, ok := obj.(*clusterv1.Cluster)
		if !ok {
			return errors.Errorf("a list of Clusters has a %T", obj)
		}
		w.Clusters[cluster.UID] = clusterOf(cluster)
		return nil
	})
	w.Now = c.Clock.Now()
	return w, errors.Wrap(err, "listing Clusters")
}

func clusterOf(cluster *clusterv1.Cluster) Cluster {
	_, annotated := cluster.Annotations[clusterv1.PausedAnnotation]
	return Cluster{
		Namespace: cluster.Namespace, Name: cluster.Name, UID: cluster.UID,
		Paused: annotated || ptr.Deref(cluster.Spec.Paused, false), Frozen: frozenNow(cluster), Generation: cluster.Generation,
	}
}

// generations reads the generation of each Cluster.
func (c *Collector) generations(ctx context.Context) (map[types.UID]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found := map[types.UID]int64{}
	newList := func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
		return list
	}
	err := c.readAll(ctx, newList, func(obj client.Object) error {
		found[obj.GetUID()] = obj.GetGeneration()
		return nil
	})
	return found, errors.Wrap(err, "listing Clusters")
}

// readAll reads a whole list, page by page, all of the same version. One of which a page is missing is none.
func (c *Collector) readAll(ctx context.Context, newList func() client.ObjectList, each func(client.Object) error) error {
	next := ""
	for {
		list := newList()
		opts := []client.ListOption{client.Limit(pageSize), client.Continue(next), client.InNamespace(c.Options.Namespace)}
		if err := c.page(ctx, list, opts); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj, ok := item.(client.Object)
			if !ok {
				return errors.Errorf("the list has a %T", item)
			}
			return each(obj)
		})
		if err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

func (c *Collector) page(ctx context.Context, list client.ObjectList, opts []client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	return c.APIReader.List(ctx, list, opts...)
}
