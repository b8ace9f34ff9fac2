package drain

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rules compiles rules for a Request.
func (w *world) rules(rules ...clusterv1.MachineDrainRule) func(*Request) {
	compiled, invalid := CompileRules(rules, nil, nil)
	w.g.Expect(invalid).To(BeEmpty())
	return func(r *Request) { r.Rules = compiled }
}

func TestStep_RulesChange_TakesEffect(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.pod("b", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
	here := withLabel("kubernetes.io/metadata.name", w.namespace)
	wait := newRule(
		"a",
		waitBehavior,
		nil,
		pods(clusterv1.MachineDrainRulePodSelector{Selector: withLabel("app", "web"), NamespaceSelector: here}),
	)
	later := newRule("b", drainBehavior, ptr.To[int32](5))
	w.eventually(func(g Gomega) {
		result := w.step(w.rules(wait, later))
		g.Expect(result.Pods[Completing]).To(HaveLen(1))
		g.Expect(result.Pods[Later]).To(HaveLen(1))
	})
	w.g.Expect(w.requests.count()["watch namespaces"]).To(Equal(1))
	w.g.Expect(w.terminating()).To(BeEmpty())

	w.step(w.rules(later))
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("a", "b")) })
}

// volume makes a PersistentVolume that is attached to a Node, and a pod that uses it.
func (w *world) volume(name string, node string) *storagev1.VolumeAttachment {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi"),
			},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: w.namespace + "-" + name},
			},
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: w.namespace, Name: name},
		},
	}
	if err := direct.Create(w.t.Context(), pv); err != nil {
		w.g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
	}
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: pv.Name + "-" + node, Finalizers: []string{"example.com/attacher"}},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com",
			NodeName: node,
			Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
		},
	}
	w.create(va)
	w.t.Cleanup(func() { w.detached(va) })
	w.attached(va)
	return va
}

func (w *world) attached(va *storagev1.VolumeAttachment) {
	before := va.DeepCopy()
	va.Status.Attached = true
	w.g.Expect(direct.Status().Patch(w.t.Context(), va, client.MergeFrom(before))).To(Succeed())
}

// detached lets a VolumeAttachment go, as its attacher does.
func (w *world) detached(va *storagev1.VolumeAttachment) {
	// Tests end with their context done.
	ctx := w.t.Context()
	if ctx.Err() != nil {
		return
	}
	_ = direct.Delete(ctx, va)
	before := va.DeepCopy()
	va.Finalizers = nil
	w.g.Expect(client.IgnoreNotFound(direct.Patch(ctx, va, client.MergeFrom(before)))).To(Succeed())
}

func claiming(claim string, priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}},
		}
		p.Spec.PriorityClassName = map[int32]string{9: "system-node-critical", 8: "system-cluster-critical"}[priority]
	}
}

func TestStep_PodsWithVolumes_AreHandedOverOneByOne(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	first, second, third := w.volume("first", w.node.Name), w.volume("second", w.node.Name), w.volume("third", w.node.Name)
	w.pod("z-first", claiming("first", 9))
	w.pod("second", claiming("second", 8))
	w.pod("third", claiming("third", 0))
	w.pod("plain")
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("plain", "z-first")) })
	w.end("z-first", "plain")
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Detaching).To(ConsistOf(*first.Spec.Source.PersistentVolumeName))
		g.Expect(result.Pods[Queued]).To(HaveLen(2))
		g.Expect(result.Volumes).To(HaveLen(3))
		g.Expect(result.Message).To(ContainSubstring("is detached"))
	})
	w.detached(first)
	w.eventually(func(g Gomega) { g.Expect(w.step().Reattaching).To(HaveLen(1)) })
	w.g.Expect(w.terminating()).To(BeEmpty(), "the volume is attached nowhere yet")
	w.volume("first", "elsewhere")
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("second")) })

	w.end("second")
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Detaching).To(HaveLen(1))
		g.Expect(result.NextDeadline).To(BeTemporally("~", fake.Now().Add(DefaultDetachTimeout), time.Minute))
	})
	w.g.Expect(w.terminating()).To(BeEmpty())
	fake.Step(DefaultDetachTimeout + time.Minute)
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("third")) })

	w.end("third")
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Done).To(BeTrue(), result.Message)
		g.Expect(result.Volumes).To(HaveLen(2))
	})
	w.detached(second)
	w.detached(third)
	w.eventually(func(g Gomega) { g.Expect(w.step().Volumes).To(BeEmpty()) })
}

// TestStep_AttachmentWithoutVolume_IsNoError: upstream fails at them. Volumes of pods that stay are not waited for.
func TestStep_AttachmentWithoutVolume_IsNoError(t *testing.T) {
	w := newWorld(t, realClock)
	w.volume("kept", w.node.Name)
	w.pod("kept", claiming("kept", 0), func(p *corev1.Pod) { p.Labels = map[string]string{clusterv1.PodDrainLabel: "skip"} })
	inline := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-inline"},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "csi.example.com", NodeName: w.node.Name, Source: storagev1.VolumeAttachmentSource{
			InlineVolumeSpec: &corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "h"},
				},
			},
		}},
	}
	w.create(inline)
	w.attached(inline)
	w.eventually(func(g Gomega) {
		result := w.step(func(r *Request) { r.Mode = Observe })
		g.Expect(result.VolumesKnown).To(BeTrue())
		g.Expect(result.Volumes).To(ConsistOf(Volume{Attachment: inline.Name}))
	})
	w.g.Expect(w.requests.count()["patch"]).To(BeZero(), "who only observes does not cordon")
	w.g.Expect(direct.Delete(t.Context(), inline)).To(Succeed())
	w.eventually(func(g Gomega) { g.Expect(w.step(func(r *Request) { r.Mode = Observe }).Volumes).To(BeEmpty()) })
}

// TestStep_ForcedWhileBlocked_DeletesAtOnce turns a drain that a budget and a hanging API server hold up into a forced one.
func TestStep_ForcedWhileBlocked_DeletesAtOnce(t *testing.T) {
	w := newWorld(t, realClock)
	va := w.volume("v", w.node.Name)
	for _, name := range []string{"a", "b", "c"} {
		w.pod(name)
	}
	w.pod("job", func(p *corev1.Pod) { p.Labels = map[string]string{clusterv1.PodDrainLabel: "wait-completed"} })
	w.pod("kept", func(p *corev1.Pod) { p.Labels = map[string]string{clusterv1.PodDrainLabel: "skip"} })
	w.budget(0)
	hang, returned := make(chan struct{}), atomic.Int32{}
	defer close(hang)
	w.requests.setAnswer(func(r *http.Request) *http.Response {
		if kindOf(r) == "evict" && !strings.Contains(r.URL.Path, "/pods/a/") {
			// Not even for a deadline of its own.
			<-hang
			returned.Add(1)
		}
		return nil
	})
	w.eventually(func(g Gomega) { g.Expect(w.step().Pods[Blocked]).To(HaveLen(1)) })
	force := func(r *Request) { r.Mode, r.ForceDetach = Forced, true }
	w.g.Expect(w.step(force).ForcedNow).To(BeTrue())
	w.g.Expect(w.step(force).ForcedNow).To(BeFalse())
	w.eventually(func(g Gomega) { g.Expect(w.step(force).Done).To(BeTrue()) })
	w.g.Expect(returned.Load()).To(BeZero(), "it does not wait for what hangs")
	left := &corev1.PodList{}
	w.g.Expect(direct.List(t.Context(), left, client.InNamespace(w.namespace))).To(Succeed())
	w.g.Expect(left.Items).To(ConsistOf(HaveField("ObjectMeta.Name", "kept")))
	w.g.Expect(direct.Get(t.Context(), client.ObjectKeyFromObject(va), va)).To(Succeed())
	w.g.Expect(va.DeletionTimestamp).NotTo(BeNil(), "its volumes are detached")
	w.g.Expect(w.requests.count()["delete volumeattachment"]).To(Equal(1))
}

// TestStep_ModeChanges_EvictsNoMore has a drain with many evictions in its queue turned into one that only observes.
func TestStep_ModeChanges_EvictsNoMore(t *testing.T) {
	w := newWorld(t, realClock)
	for i := range 30 {
		w.pod(fmt.Sprintf("p%d", i))
	}
	w.requests.setAnswer(func(r *http.Request) *http.Response {
		if kindOf(r) == "evict" {
			<-r.Context().Done()
		}
		return nil
	})
	w.eventually(func(g Gomega) {
		w.step()
		g.Expect(w.requests.count()["evict"]).To(Equal(maxParallelEvictions), "so many at once")
	})
	w.step(func(r *Request) { r.Mode = Observe })
	w.requests.setAnswer(nil)
	w.g.Consistently(w.terminating).WithTimeout(500 * time.Millisecond).Should(BeEmpty())
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(HaveLen(30)) })
}

// TestStep_ForcedAndRefused_Ends: pods and volumes cannot even be deleted.
func TestStep_ForcedAndRefused_Ends(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	w.volume("v", w.node.Name)
	w.pod("a")
	w.requests.setAnswer(func(r *http.Request) *http.Response {
		if r.Method == http.MethodGet {
			return nil
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no right","code":403}`
		return &http.Response{
			StatusCode: http.StatusForbidden,
			Request:    r,
			Body:       io.NopCloser(bytes.NewBufferString(body)),
			Header:     http.Header{"Content-Type": {"application/json"}},
		}
	})
	force := func(r *Request) { r.Mode, r.ForceDetach = Forced, true }
	w.eventually(func(g Gomega) {
		fake.Step(time.Second)
		result := w.step(force)
		g.Expect(result.Done).To(BeTrue(), result.Message)
		g.Expect(result.Pods[Abandoned]).To(HaveLen(1))
	})
	w.g.Expect(w.requests.count()).To(And(HaveKeyWithValue("delete pod", 2), HaveKeyWithValue("delete volumeattachment", 2)))
}

// TestForget_LastDrainOfACluster_EndsItsWatches counts what several drains of a cluster have read together.
func TestForget_LastDrainOfACluster_EndsItsWatches(t *testing.T) {
	w := newWorld(t, realClock)
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-other"}}
	w.create(other)
	second := func(r *Request) { r.Key.Name, r.Node = "other", other }
	w.eventually(func(g Gomega) {
		g.Expect(w.step().VolumesKnown).To(BeTrue())
		g.Expect(w.step(second).VolumesKnown).To(BeTrue())
	})
	w.g.Expect(w.requests.count()["watch volumeattachments"]).To(Equal(1))
	target := w.target()
	w.drainer.Forget(w.request().Key)
	w.g.Expect(target.attachments.informer.IsStopped()).To(BeFalse(), "the other drain continues")
	w.drainer.Forget(w.request(second).Key)
	_, targets := w.kept()
	w.g.Expect(targets).To(BeZero())
	w.eventually(func(g Gomega) { g.Expect(target.attachments.informer.IsStopped()).To(BeTrue()) })
}
