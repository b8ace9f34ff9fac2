package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/orphans"
)

// removeByForce deletes a Machine and its infrastructure machine and removes their finalizers, as users do to get rid of a namespace.
// The instance continues to run, and no object claims it any more.
func (r *run) removeByForce(ctx context.Context, a action) (string, error) {
	return r.onMachine(ctx, a, func(m *clusterv1.Machine) error {
		infra := r.cloud.machine(r.meta(m.Name), r.cloud.types[0])
		if err := r.plane.direct.Get(ctx, client.ObjectKeyFromObject(infra), infra); err != nil {
			return err
		}
		r.forced[infra.GetUID()], r.forced[m.UID] = m.Spec.ProviderID, m.Spec.ProviderID
		r.deleted[m.UID] = true
		delete(r.single, m.Name)
		// Its Node is not drained.
		r.deletedNodes[m.Status.NodeRef.Name] = true
		for _, instance := range r.account.machines() {
			for _, node := range []string{m.Name, instance.host} {
				r.deletedNodes[node] = r.deletedNodes[node] || instance.providerID == m.Spec.ProviderID
			}
		}
		// The provider would terminate the instance before the finalizer is gone.
		return r.provider.stopped(func() error {
			for _, object := range []client.Object{infra, m} {
				if err := r.withoutFinalizers(ctx, object); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// collectTries is how many Machines are removed by force after the faults until the provider has deleted what one of them leaves: marks
// that prove nothing are rewritten one by one.
const collectTries = 5

// collectsOnceMore removes a Machine by force when all is well, and requires the provider to delete its instance. Without it a provider
// whose collector has stopped under the faults would pass, since all that was removed under faults may be left to users.
func (r *run) collectsOnceMore(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 2)) // Chaos, not secrets.
	for range collectTries {
		left := r.left
		removed, err := r.removeByForce(ctx, action{act: removeByForce, pick: random.Uint64()})
		if err != nil {
			return err
		}
		r.note("remove a Machine by force, with nothing else wrong: %s", removed)
		if err := r.await(ctx, "its instance is gone, and all is well", r.problems); err != nil {
			return err
		}
		if r.left == left {
			return nil
		}
	}
	return errors.Errorf("%d Machines were removed by force, with nothing else wrong, and the provider has left all of their instances to users", collectTries)
}

// withoutFinalizers deletes an object at once. While it is being deleted, no finalizer can be added.
func (r *run) withoutFinalizers(ctx context.Context, object client.Object) error {
	if err := client.IgnoreNotFound(r.plane.direct.Delete(ctx, object)); err != nil {
		return errors.Wrapf(err, "deleting %T %s", object, object.GetName())
	}
	err := r.plane.direct.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	return errors.Wrapf(client.IgnoreNotFound(err), "removing the finalizers of %T %s", object, object.GetName())
}

// collectForced is what other controllers do after a removal by force: the garbage collector deletes what such a Machine owns, and the
// cloud-controller-manager the Node of an instance that is gone.
func (r *run) collectForced(ctx context.Context, s *state) error {
	ids := map[string]bool{}
	for _, id := range r.forced {
		ids[id] = true
	}
	for _, instance := range s.instances {
		delete(ids, instance.providerID)
	}
	for i := range s.machines.Items {
		// In clouds of names another Machine may have the name, and so its instance the ID.
		delete(ids, s.machines.Items[i].Spec.ProviderID)
	}
	for i := range s.nodes.Items {
		node := &s.nodes.Items[i]
		if !ids[node.Spec.ProviderID] {
			continue
		}
		r.note("collect Node %s, whose instance is gone", node.Name)
		if err := client.IgnoreNotFound(r.plane.direct.Delete(ctx, node)); err != nil {
			return errors.Wrapf(err, "deleting Node %s", node.Name)
		}
	}
	return nil
}

// unproven are what the collector may conclude of an instance that was removed by force, so that it is left to users: its object was
// removed before a scan had seen it or the Cluster was paused about then, or its launch could not be marked.
var unproven = []orphans.Assessment{orphans.Unproven, orphans.OtherInstallation, orphans.NoLineage, nameTaken}

// nameTaken is of an instance that has the name which another object needs for its own, in a cloud of names: its object was removed by
// force while no core was at work, or right before the core was killed, so that the next core gave the name to another Machine. The
// condition of that object says that the name is taken, and what to do.
const nameTaken orphans.Assessment = "name taken"

// takesName reports whether another object has the name of that of the instance, and no instance yet.
func (s *state) takesName(i machine) bool {
	return slices.ContainsFunc(s.infra, func(m driver.Object) bool {
		return m.GetName() == i.name && m.GetUID() != i.owner && m.CommonSpec().ProviderID == ""
	})
}

// attendOrphans terminates instances in the cloud that the provider has reported and does not delete, as the guide says.
// What it should delete itself, and what it does not report, is left alone, so that the run fails.
func (r *run) attendOrphans(s *state) error {
	unclaimed := s.unclaimed()
	if len(unclaimed) == 0 {
		return nil
	}
	content, err := os.ReadFile(r.provider.spec.Log)
	if err != nil {
		return errors.Wrap(err, "reading what the provider reports")
	}
	reported := assessments(string(content))
	for _, instance := range unclaimed {
		what := reported[instance.providerID]
		if s.takesName(instance) {
			what = nameTaken
		}
		if r.forced[instance.owner] == "" || !slices.Contains(unproven, what) {
			continue
		}
		r.note("terminate the instance %s of %s, which no object claims: %s", instance.id, instance.name, what)
		r.left++
		r.guard.excuse(instance.providerID)
		if err := r.account.vanish(instance); err != nil {
			return errors.Wrapf(err, "terminating the instance %s", instance.id)
		}
	}
	return nil
}

// unclaimed are the instances of which the object is not there any more.
func (s *state) unclaimed() []machine {
	owners := map[types.UID]bool{}
	for _, m := range s.infra {
		owners[m.GetUID()] = true
	}
	return slices.DeleteFunc(slices.Clone(s.instances), func(i machine) bool { return owners[i.owner] })
}

// Lines in the log of a provider.
const (
	reportedLine  = `"No object claims what the cloud lists"`
	collectedLine = `"The cloud deletes what no object claims"`
)

var (
	providerIDValue = regexp.MustCompile(` providerID="([^"]*)"`)
	assessmentValue = regexp.MustCompile(` assessment="([^"]*)"`)
)

// assessments are the latest that a provider has reported, by provider ID.
func assessments(log string) map[string]orphans.Assessment {
	found := map[string]orphans.Assessment{}
	for line := range strings.Lines(log) {
		id, what := providerIDValue.FindStringSubmatch(line), assessmentValue.FindStringSubmatch(line)
		if strings.Contains(line, reportedLine) && id != nil && what != nil {
			found[id[1]] = orphans.Assessment(what[1])
		}
	}
	return found
}

// orphansSummary reports what became of instances whose objects were removed by force.
func (r *run) orphansSummary() (string, error) {
	content, err := os.ReadFile(r.provider.spec.Log)
	return fmt.Sprintf("%d Machines were removed by force; %d times the provider has deleted what was left, %d instances were left to users",
		len(r.forced)/2, strings.Count(string(content), collectedLine), r.left), errors.Wrap(err, "reading what the provider reports")
}

// claims are the objects that claim instances, and are not being deleted.
func claims(infra []driver.Object) map[types.UID]string {
	found := map[types.UID]string{}
	for _, m := range infra {
		if m.GetDeletionTimestamp().IsZero() {
			found[m.GetUID()] = m.GetName()
		}
	}
	return found
}
