package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// historyLog is in the directory of the run.
	historyLog = "history.log"
	lookEvery  = 500 * time.Millisecond
	// maxWait bounds a wait that still makes progress.
	maxWait = 10 * time.Minute
	// relapsePause is the part of the duration of a run for which one more replacement fails after the faults; a short run has none.
	relapsePause = 15 * time.Second
	// quiet is for how long nothing may be written once all is well.
	quiet = 3 * time.Second
	// reported bounds how many problems are reported.
	reported = 40
)

// verify is the second part of a run: without faults, everything converges.
func (r *run) verify(ctx context.Context) error {
	endedBefore := r.core.endedItself() + r.provider.endedItself()
	r.attending, r.relapses = true, int(r.Duration/relapsePause)
	if err := r.checkVanished(ctx); err != nil {
		return err
	}
	if err := r.await(ctx, "all is well", r.problems); err != nil {
		return err
	}
	if err := r.release(ctx); err != nil {
		return err
	}
	if err := r.await(ctx, "nothing is preserved, and all is well", r.problems); err != nil {
		return err
	}
	if err := r.replacesOnceMore(ctx); err != nil {
		return err
	}
	if err := r.collectsOnceMore(ctx); err != nil {
		return err
	}
	if err := r.staysQuiet(ctx); err != nil {
		return err
	}
	if err := r.checkPast(); err != nil {
		return err
	}
	r.attending = false
	if err := r.leave(ctx); err != nil {
		return err
	}
	if ended := r.core.endedItself() + r.provider.endedItself() - endedBefore; ended > 0 {
		return errors.Errorf("programs have exited by themselves %d times when there were no faults any more", ended)
	}
	for _, c := range []*child{r.core, r.provider} {
		if err := c.checkLog(); err != nil {
			return err
		}
	}
	return nil
}

// await reads everything until there are no problems. It gives up when their number has not become smaller for a
// while, which is longer on a busy machine.
func (r *run) await(ctx context.Context, what string, problems func(*state) []string) error {
	begin, best, progress := time.Now(), 1<<30, time.Now()
	for {
		s, err := r.read(ctx)
		if err != nil {
			return err
		}
		if err := r.collect(ctx, s); err != nil {
			return err
		}
		if r.attending {
			if err := r.attend(ctx, s); err != nil {
				return err
			}
		}
		found := problems(s)
		if len(found) == 0 {
			r.note("%s", what)
			return nil
		}
		if len(found) < best {
			best, progress = len(found), time.Now()
		}
		if time.Since(progress) > stallTimeout() || time.Since(begin) > maxWait {
			return errors.Errorf("%q was not reached, after %s and %s without progress:\n%s", what,
				time.Since(begin).Round(time.Second), time.Since(progress).Round(time.Second), summary(found))
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(context.Cause(ctx), "awaiting that %s; still:\n%s", what, summary(found))
		case <-time.After(lookEvery):
		}
	}
}

func summary(problems []string) string {
	if more := len(problems) - reported; more > 0 {
		problems = append(slices.Clone(problems[:reported]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(problems, "\n")
}

// checkVanished: Machines whose instance has vanished, or whose infrastructure machine was deleted, report it for as long as they are
// there, and do not get another one. Then it deletes those that no controller replaces, as a user would, and those whose infrastructure
// machine is gone, which may come back for ten minutes; the health check replaces the others.
func (r *run) checkVanished(ctx context.Context) error {
	var machines []*clusterv1.Machine
	err := r.await(ctx, "vanished instances are reported", func(s *state) []string {
		var p list
		machines = r.affected(s)
		for _, m := range machines {
			if isTrue(m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition) ||
				isTrue(m.Status.Conditions, clusterv1.MachineReadyCondition) {
				p.add(
					"Machine %s, whose instance is gone: %s; %s",
					m.Name,
					textOf(m, clusterv1.MachineInfrastructureReadyCondition),
					textOf(m, clusterv1.MachineReadyCondition),
				)
			}
		}
		// The instance may have vanished before the Machine knew of it.
		for name := range vanishedUnknown(r.vanished, s) {
			p.add("Machine %s does not know of the instance yet that has vanished", name)
		}
		return p
	})
	if err != nil {
		return err
	}
	for _, m := range machines {
		if owner := metav1.GetControllerOf(m); owner != nil && owner.Kind == "MachineSet" && !r.bereft[m.Name] {
			continue
		}
		delete(r.single, m.Name)
		r.deleted[m.UID] = true
		if err := client.IgnoreNotFound(r.plane.direct.Delete(ctx, m)); err != nil {
			return errors.Wrapf(err, "deleting Machine %s", m.Name)
		}
	}
	r.note("%d Machines have lost their instances", len(machines))
	return nil
}

// affected are the Machines that have lost their instance. One whose infrastructure machine was deleted before the core had seen it
// may have got another.
func (r *run) affected(s *state) []*clusterv1.Machine {
	infra := map[string]bool{}
	for _, m := range s.infra {
		infra[m.GetName()] = m.GetDeletionTimestamp().IsZero()
	}
	var machines []*clusterv1.Machine
	for i := range s.machines.Items {
		m := &s.machines.Items[i]
		vanished := m.Spec.ProviderID != "" && r.vanished[m.Spec.ProviderID] == m.Name
		if m.DeletionTimestamp.IsZero() && (vanished || r.bereft[m.Name] && !infra[m.Name]) {
			machines = append(machines, m)
		}
	}
	return machines
}

// vanishedUnknown are Machines without a provider ID of which an instance has vanished.
func vanishedUnknown(vanished map[string]string, s *state) map[string]bool {
	names := map[string]bool{}
	for _, name := range vanished {
		names[name] = true
	}
	found := map[string]bool{}
	for i := range s.machines.Items {
		m := &s.machines.Items[i]
		if names[m.Name] && m.Spec.ProviderID == "" && m.DeletionTimestamp.IsZero() {
			found[m.Name] = true
		}
	}
	return found
}

// staysQuiet: the core writes nothing any more, and the Machines are the same after a while.
func (r *run) staysQuiet(ctx context.Context) error {
	deadline := time.Now().Add(stallTimeout())
	for {
		before := r.writes.Load()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(quiet):
		}
		if r.writes.Load() == before {
			break
		}
		if time.Now().After(deadline) {
			return errors.Errorf("the core still writes (%d requests within %s) though all is well", r.writes.Load()-before, quiet)
		}
	}
	return r.await(ctx, "nothing changes any more", r.problems)
}

// leave deletes everything, under faults at first; nothing may be left.
func (r *run) leave(ctx context.Context) error {
	for _, d := range r.deciders() {
		d.SetFactor(1)
	}
	if err := r.deleteAll(ctx); err != nil {
		return err
	}
	// For how long the deletion runs under faults, whatever it reaches in that time; its end is awaited below.
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(min(r.Duration/4, 10*time.Second)):
	}
	r.core.kill()
	if err := r.calm(ctx); err != nil {
		return err
	}
	if err := r.await(ctx, "nothing is left", func(s *state) []string { return r.leftovers(s) }); err != nil {
		return err
	}
	err := r.plane.direct.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(workloads), client.GracePeriodSeconds(0))
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "removing Pods")
	}
	// Those that the core could not know, see checkNodes: the next run would take them for its own.
	return errors.Wrap(client.IgnoreNotFound(r.plane.direct.DeleteAllOf(ctx, &corev1.Node{})), "removing Nodes")
}

// deleteAll deletes the Cluster, or all that is in it, as the seed says.
func (r *run) deleteAll(ctx context.Context) error {
	cluster := &clusterv1.Cluster{ObjectMeta: r.meta(clusterName)}
	if r.Seed%2 == 0 {
		r.note("delete the Cluster")
		return errors.Wrap(r.plane.direct.Delete(ctx, cluster), "deleting the Cluster")
	}
	r.note("delete all Machines and what keeps them")
	for _, object := range []client.Object{&clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.Machine{}} {
		if err := r.plane.direct.DeleteAllOf(ctx, object, client.InNamespace(r.namespace)); err != nil {
			return errors.Wrapf(err, "deleting every %T", object)
		}
	}
	return nil
}

// leftovers is what must not be there at the end.
func (r *run) leftovers(s *state) []string {
	var p list
	for _, d := range s.deployments.Items {
		p.add("MachineDeployment %s", d.Name)
	}
	for _, set := range s.sets.Items {
		p.add("MachineSet %s", set.Name)
	}
	for i := range s.machines.Items {
		p.add("Machine %s: %s", s.machines.Items[i].Name, textOf(&s.machines.Items[i], clusterv1.MachineDeletingCondition))
	}
	if len(s.clusters.Items) > 0 && r.Seed%2 == 0 {
		p.add("Cluster %s", s.clusters.Items[0].Name)
	}
	s.machines.Items = nil
	r.checkRest(s, &p)
	return p
}
