package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/manager"
	"millwright.dev/providers/driver/orphans"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// collecting has the provider look for orphans all the time.
func collecting(t *testing.T, policy orphans.Policy) *fixture {
	t.Helper()
	f := newFixture(t, simulator.Options{})
	f.orphans = orphans.Options{
		Policy:    policy,
		Period:    50 * time.Millisecond,
		Namespace: f.namespace,
		Record:    types.NamespacedName{Namespace: f.namespace, Name: "orphans"},
	}
	return f
}

// scanned lets time pass and waits until a scan has come that far.
func (f *fixture) scanned() {
	f.t.Helper()
	f.clock.step(10 * time.Minute)
	at := f.clock.Now().Unix()
	f.Eventually(func() (int64, error) {
		stored, record := &corev1.ConfigMap{}, orphans.Record{}
		if err := f.client.Get(f.ctx, f.orphans.Record, stored); err != nil {
			return 0, err
		}
		if err := json.Unmarshal([]byte(stored.Data["record"]), &record); err != nil {
			return 0, err
		}
		return record.LastScan, nil
	}).Should(BeNumerically(">=", at))
}

// expunged is a machine that ran, and whose object was removed by force while no provider was there.
func (f *fixture) expunged(name string) *infrav1.AWSMachine {
	f.t.Helper()
	f.machine(name)
	m := f.becomesReady(name)
	f.scanned()
	f.stop()
	f.expunge(m)
	return m
}

// tagsOf are the tags of an instance.
func (f *fixture) tagsOf(id string) map[string]string {
	for _, i := range f.instances() {
		if i.ID == id {
			return i.Tags
		}
	}
	return nil
}

func TestAnInstanceWhoseObjectWasRemovedByForceIsDeleted(t *testing.T) {
	f := collecting(t, orphans.PolicyDelete)
	f.start()
	f.machine("kept")
	kept := f.becomesReady("kept")
	m := f.expunged("m")
	lineage, ok := driver.ParseLineage(f.tagsOf(m.Status.InstanceID)[instance.TagLineage])
	f.Expect(ok).To(BeTrue())
	f.Expect(lineage.Cluster).To(Equal(f.cluster(true).UID))
	for _, v := range f.sim.Volumes() {
		f.Expect(v.Tags).To(HaveKey(instance.TagLineage))
	}
	f.start()
	f.scanned()
	f.Expect(f.live()).To(Equal(2), "it may have been seen once")
	f.scanned()
	f.scanned()
	f.Eventually(func() bool { return f.alive(m.Status.InstanceID) }).Should(BeFalse())
	f.Eventually(f.events).Should(ContainElement(orphans.DeletedEvent))
	f.Expect(f.alive(kept.Status.InstanceID)).To(BeTrue())
}

func TestThePolicyReportDeletesNothing(t *testing.T) {
	f := collecting(t, orphans.PolicyReport)
	f.start()
	m := f.expunged("m")
	f.start()
	for range 3 {
		f.scanned()
	}
	f.Eventually(f.events).Should(ContainElement(orphans.OrphanedEvent))
	f.Expect(f.alive(m.Status.InstanceID)).To(BeTrue())
	f.Expect(f.calls("TerminateInstances")).To(BeZero())
}

// Termination protection is the account's own decision: the orphan stays, it is reported, and goes once the protection does.
func TestAProtectedOrphan(t *testing.T) {
	f := collecting(t, orphans.PolicyDelete)
	f.start()
	m := f.expunged("m")
	f.sim.AddFault(
		simapi.Fault{ID: "protected", Action: "TerminateInstances", Error: &simapi.APIError{Code: "OperationNotPermitted", Message: "protected"}},
	)
	f.start()
	for range 3 {
		f.scanned()
	}
	f.Eventually(f.events).Should(ContainElement(orphans.FailedEvent))
	f.Expect(f.alive(m.Status.InstanceID)).To(BeTrue())
	f.sim.ClearFaults()
	f.Eventually(func() bool { return f.alive(m.Status.InstanceID) }).Should(BeFalse())
}

// Machines matter more than a mark.
func TestLaunchesGoOnWithoutARecordOfLineages(t *testing.T) {
	f := collecting(t, orphans.PolicyDelete)
	f.intercept.Create = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if _, ok := obj.(*corev1.ConfigMap); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "orphans", errors.New("a policy denies it"))
		}
		return c.Create(ctx, obj, opts...)
	}
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	f.Expect(f.tagsOf(m.Status.InstanceID)).NotTo(HaveKey(instance.TagLineage))
	f.Eventually(f.events).Should(ContainElement("LineageMissing"))
}

// keeping launches what does not end with its instance.
type keeping struct{ instance.API }

func (k keeping) RunInstances(ctx context.Context, in *ec2.RunInstancesInput, opts ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	for i := range in.BlockDeviceMappings {
		in.BlockDeviceMappings[i].Ebs.DeleteOnTermination = aws.Bool(false)
	}
	for i := range in.NetworkInterfaces {
		in.NetworkInterfaces[i].DeleteOnTermination = aws.Bool(false)
	}
	return k.API.RunInstances(ctx, in, opts...)
}

func TestWhatAnOrphanLeavesBehindIsDeleted(t *testing.T) {
	f := collecting(t, orphans.PolicyDelete)
	f.wrap = func(api instance.API) instance.API { return keeping{api} }
	f.start()
	f.machine("m", func(m *infrav1.AWSMachine) {
		m.Spec.Volumes = []infrav1.DataVolume{{Device: "/dev/sdf", Volume: infrav1.Volume{SizeGiB: aws.Int32(10)}}}
	})
	m := f.becomesReady("m")
	f.scanned()
	f.stop()
	f.expunge(m)
	f.terminate(m.Status.InstanceID)
	f.Eventually(f.live).Should(BeZero())
	f.Expect(f.sim.Volumes()).To(HaveLen(1))
	f.Expect(f.sim.NetworkInterfaces()).To(HaveLen(1))
	f.start()
	for range 3 {
		f.scanned()
	}
	f.Eventually(f.sim.Volumes).Should(BeEmpty())
	f.Eventually(f.sim.NetworkInterfaces).Should(BeEmpty())
	f.Eventually(f.events).Should(ContainElement(orphans.DeletedEvent))
}

// clusterctl move takes objects and their records along, and gives all of them new UIDs. At the target the instance belongs to the new
// Cluster, and so does what was launched with it; nothing else is written, on nothing else.
func TestAMovedInstanceGetsTheLineageOfItsNewCluster(t *testing.T) {
	f := collecting(t, orphans.PolicyDelete)
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	f.scanned()
	other, _ := f.foreign()
	before, stranger := f.tagsOf(m.Status.InstanceID), f.tagsOf(other)
	f.stop()
	f.Expect(f.client.Delete(f.ctx, f.cluster(true))).To(Succeed())
	f.cluster(true)
	f.moved("m")
	uid := f.cluster(true).UID
	f.Eventually(func() types.UID {
		lineage, _ := driver.ParseLineage(f.tagsOf(m.Status.InstanceID)[instance.TagLineage])
		return lineage.Cluster
	}).Should(Equal(uid))
	f.scanned()
	after := f.tagsOf(m.Status.InstanceID)
	for _, n := range f.sim.NetworkInterfaces() {
		if n.InstanceID == m.Status.InstanceID {
			f.Expect(n.Tags[instance.TagLineage]).To(Equal(after[instance.TagLineage]))
		}
	}
	after[instance.TagLineage] = before[instance.TagLineage]
	f.Expect(after).To(Equal(before))
	f.Expect(f.tagsOf(other)).To(Equal(stranger))
	f.Expect(f.live()).To(Equal(2))

	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.stop()
	f.expunge(m)
	f.start()
	for range 3 {
		f.scanned()
	}
	f.Eventually(f.live).Should(Equal(1), "it is collected where it is now")
}

// The Role of the manifests is enough for the record, and gives nothing else of the namespace away.
func TestTheRoleForTheRecordIsEnough(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	options := manager.NewOptions(name, driver.Traits{})
	own := options.InstallNamespace
	f.Expect(f.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}})).To(Succeed())
	content, err := os.ReadFile("../../config/providers/aws/rbac/orphans.yaml")
	f.Expect(err).NotTo(HaveOccurred())
	documents := bytes.Split(content, []byte("\n---\n"))
	f.Expect(documents).To(HaveLen(2))
	for i, obj := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		f.Expect(yaml.UnmarshalStrict(documents[i], obj)).To(Succeed())
		f.Expect(f.client.Create(f.ctx, obj)).To(Succeed())
	}
	config := rest.CopyConfig(env.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + own + ":millwright-aws"
	as, err := client.New(config, client.Options{Scheme: f.client.Scheme(), Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())

	record := types.NamespacedName{Namespace: own, Name: options.Machine().Orphans.Record.Name}
	store := orphans.NewStore(as, as, f.clock, record)
	f.Eventually(func() error { return store.Begin(f.ctx) }).Should(Succeed())
	f.clock.step(time.Minute)
	_, err = store.Checkpoint(f.ctx, f.clock.Now(), nil, nil)
	f.Expect(err).NotTo(HaveOccurred())
	record.Name = "kube-root-ca.crt"
	f.Expect(apierrors.IsForbidden(as.Get(f.ctx, record, &corev1.ConfigMap{}))).To(BeTrue())
}
