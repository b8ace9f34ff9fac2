package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
	"millwright.dev/test/testenv"
)

const (
	// settling is how long the core may take for all rows together on a busy computer.
	settling = 10 * time.Minute
	// reporting is how long the reports of all rows may take once all objects have settled.
	reporting = 2 * time.Minute
	// deniedAnnotation of a namespace, a Node or a VolumeAttachment has the write that the policy denies the core there, such as
	// "UPDATE machines/status".
	deniedAnnotation = "example.com/denied"
	// ticket is the message of the policy.
	ticket = "writes need a ticket"
	// attemptsAllowed is how often a denied write may be tried in an interval of 10 s after it has been reported. A controller that does
	// not back off tries at least twice a second.
	attemptsAllowed = 12
)

// Stand-in kinds as the rows name them.
var (
	configKind  = coretest.Kind(coretest.Config, version.V1Beta2)
	machineKind = coretest.Kind(coretest.Machine, version.V1Beta2)
	infraKind   = coretest.Kind(coretest.InfraCluster, version.V1Beta2)
	planeKind   = coretest.Kind(coretest.ControlPlane, version.V1Beta2)
)

// deniedWrites is one core with the objects of all rows, each in its namespace.
type deniedWrites struct {
	client.Client
	*WithT
	t    *testing.T
	sent *coretest.Requests
	// target is the kubeconfig of all Clusters.
	target []byte
	// deadline is when all reports must be there.
	deadline time.Time
}

// deniedWrite is one row.
type deniedWrite struct {
	// name is the controller and its write.
	name string
	// denied is the write that the policy denies, as "UPDATE machines/status".
	denied string
	// with changes or adds objects before they are created.
	with func(*row)
	// act leads to the write after all objects have settled. If it is nil, the write is denied from the beginning.
	act func(*row)
	// reported are kinds, each with the type of the condition or the reason of the Warning event that has the policy's words.
	reported []string
}

// row is a deniedWrite in its namespace.
type row struct {
	*deniedWrites
	deniedWrite
	namespace  string
	cluster    *clusterv1.Cluster
	deployment *clusterv1.MachineDeployment
	more       []client.Object
}

func newDeniedWrites(t *testing.T) *deniedWrites {
	t.Helper()
	env, c := startServer(t)
	w := &deniedWrites{Client: c, WithT: NewWithT(t), t: t, sent: &coretest.Requests{}}
	w.target = kubeconfigOf(t, w.sent, env, "target")
	w.installPolicies()
	t.Cleanup(runCore(t, c, kubeconfigOf(t, w.sent, env, "core"), "--webhook-port=0"))
	go func() { _ = coretest.Instant(t.Context(), c, "", version.V1Beta2) }()
	return w
}

// installPolicies installs one policy for all that is in namespaces, which goes by the annotation of the namespace, and one for the rest,
// which goes by that of the object. ConfigMaps are denied in each namespace with the annotation, so that a test sees when it is in force.
func (w *deniedWrites) installPolicies() {
	const write = "request.operation + ' ' + request.resource.resource + (has(request.subResource) ? '/' + request.subResource : '')"
	allowed := func(of string) string {
		return fmt.Sprintf("!has(%[1]s.metadata.annotations) || !('%[2]s' in %[1]s.metadata.annotations) || "+
			"request.resource.resource != 'configmaps' && %[1]s.metadata.annotations['%[2]s'] != %[3]s", of, deniedAnnotation, write)
	}
	w.installPolicy("denied-writes", allowed("namespaceObject"), admissionv1.NamespacedScope, "*/*")
	w.installPolicy("denied-node-writes", "oldObject == null || "+allowed("oldObject"), admissionv1.ClusterScope, "nodes")
}

func (w *deniedWrites) installPolicy(name, expression string, scope admissionv1.ScopeType, resource string) {
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name: "core", Expression: "request.userInfo.username in ['core', 'target'] || request.resource.resource == 'configmaps'",
	}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
			Rule: admissionv1.Rule{
				APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resource}, Scope: &scope,
			},
		},
	}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: expression, Message: ticket}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}
	w.create(policy, binding)
}

func (w *deniedWrites) create(objects ...client.Object) {
	w.t.Helper()
	for _, object := range objects {
		w.Expect(w.Create(w.t.Context(), object)).To(Succeed(), object.GetName())
	}
}

// newRow creates the objects of a row: a Cluster with a MachineDeployment of one Machine, unless the row has others.
func (w *deniedWrites) newRow(write deniedWrite) *row {
	w.t.Helper()
	r := &row{deniedWrites: w, deniedWrite: write, namespace: testenv.Namespace(w.t, w.Client)}
	if r.act == nil {
		r.deny()
	}
	named := metav1.ObjectMeta{Namespace: r.namespace, Name: r.namespace}
	r.cluster = &clusterv1.Cluster{ObjectMeta: named, Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}}
	r.deployment = &clusterv1.MachineDeployment{ObjectMeta: named, Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: r.namespace, Replicas: ptr.To[int32](1),
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "d"}},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "d"}},
			Spec: clusterv1.MachineSpec{
				ClusterName: r.namespace, InfrastructureRef: coretest.Ref(machineKind+"Template", "t"),
				Bootstrap: clusterv1.Bootstrap{ConfigRef: coretest.Ref(configKind+"Template", "t")},
			},
		},
	}}
	if r.with != nil {
		r.with(r)
	}
	w.create(
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: r.namespace, Name: r.namespace + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: r.namespace},
			},
			Data: map[string][]byte{"value": w.target},
		},
		r.cluster, coretest.Template(configKind, r.namespace, "t"), coretest.Template(machineKind, r.namespace, "t"),
	)
	w.create(r.more...)
	if r.cluster.Spec.InfrastructureRef.IsDefined() {
		for _, object := range r.more {
			done := `{"status":{"initialization":{"provisioned":true,"controlPlaneInitialized":true}}}`
			w.Expect(w.Status().Patch(w.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(done)))).To(Succeed())
		}
	}
	if r.deployment != nil {
		w.create(r.deployment)
	}
	return r
}

// deny has the policy deny the write of the row from now on.
func (r *row) deny() {
	r.t.Helper()
	if strings.HasSuffix(r.denied, " nodes") {
		r.annotate(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.machine().Name}})
		return
	}
	r.annotate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}})
	r.Eventually(func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "probe"}}
		return r.Create(r.t.Context(), probe, client.DryRunAll)
	}).WithTimeout(settling).Should(MatchError(ContainSubstring(ticket)))
}

func (r *row) annotate(object client.Object) {
	r.t.Helper()
	r.patch(object, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, deniedAnnotation, r.denied))
}

func (r *row) patch(object client.Object, patch string) {
	r.t.Helper()
	r.Expect(r.Patch(r.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

func (r *row) remove(object client.Object) {
	r.t.Helper()
	r.Expect(r.Delete(r.t.Context(), object)).To(Succeed())
}

// settled waits until all Machines of the row are ready.
func (r *row) settled() {
	r.t.Helper()
	r.Eventually(func(g Gomega) {
		list := &clusterv1.MachineList{}
		g.Expect(r.List(r.t.Context(), list, client.InNamespace(r.namespace))).To(Succeed())
		g.Expect(list.Items).NotTo(BeEmpty())
		for _, machine := range list.Items {
			ready := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineReadyCondition)
			g.Expect(ready).To(HaveValue(HaveField("Status", metav1.ConditionTrue)), r.name)
		}
	}).WithTimeout(settling).Should(Succeed())
}

// machine is the only Machine of the row, and set its only MachineSet.
func (r *row) machine() *clusterv1.Machine {
	r.t.Helper()
	list := &clusterv1.MachineList{}
	r.Expect(r.List(r.t.Context(), list, client.InNamespace(r.namespace))).To(Succeed())
	r.Expect(list.Items).To(HaveLen(1), r.name)
	return &list.Items[0]
}

func (r *row) set() *clusterv1.MachineSet {
	r.t.Helper()
	list := &clusterv1.MachineSetList{}
	r.Expect(r.List(r.t.Context(), list, client.InNamespace(r.namespace))).To(Succeed())
	r.Expect(list.Items).To(HaveLen(1), r.name)
	return &list.Items[0]
}

// isReported waits until an object of the kind has the policy's words in the condition, or in a Warning event with that reason.
func (r *row) isReported(t *testing.T, kind, in string) {
	t.Helper()
	group := clusterv1.GroupVersion
	NewWithT(t).Eventually(func(g Gomega) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(group.WithKind(kind + "List"))
		g.Expect(r.List(t.Context(), list, client.InNamespace(r.namespace))).To(Succeed())
		var reports []string
		for _, object := range list.Items {
			conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
			for _, condition := range conditions {
				reports = append(reports, fmt.Sprintf("%v", condition))
				if fields, ok := condition.(map[string]any); ok && fields["type"] == in && strings.Contains(fmt.Sprint(fields["message"]), ticket) {
					return
				}
			}
		}
		events := &eventsv1.EventList{}
		g.Expect(r.List(t.Context(), events, client.InNamespace(r.namespace))).To(Succeed())
		for _, event := range events.Items {
			reports = append(reports, fmt.Sprintf("%s %s %s: %s", event.Regarding.Kind, event.Type, event.Reason, event.Note))
			if event.Regarding.Kind == kind && event.Type == corev1.EventTypeWarning && event.Reason == in && strings.Contains(event.Note, ticket) {
				return
			}
		}
		g.Expect(reports).To(BeEmpty(), "no %s of the %s has the words of the policy", in, kind)
	}).WithTimeout(max(time.Until(r.deadline), time.Second)).Should(Succeed())
}

// attempts counts the writes of the row that were denied so far.
func (r *row) attempts() (count int) {
	for _, request := range r.sent.Writes(r.namespace) {
		if request.Verb != http.MethodGet && (request.Status == http.StatusForbidden || request.Status == http.StatusUnprocessableEntity) {
			count++
		}
	}
	return count
}
