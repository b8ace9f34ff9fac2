package machine

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/core/remote"
)

// judged is a scope in which all is well with a Machine, changed.
func judged(changes ...func(*scope)) *scope {
	object := func(kind string) external.Object {
		return external.Object{Contract: version.V1Beta2, Unstructured: &unstructured.Unstructured{Object: map[string]any{"kind": kind}}}
	}
	ref := func(kind string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: kind, Name: "m"}
	}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Generation: 2, Finalizers: []string{clusterv1.MachineFinalizer}}}
	m.Spec.ClusterName, m.Spec.ProviderID = "c", "id"
	m.Spec.Bootstrap.ConfigRef, m.Spec.InfrastructureRef = ref("Config"), ref("Infra")
	m.Status.NodeRef.Name = "n"
	m.Status.Initialization.BootstrapDataSecretCreated, m.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
	s := &scope{
		Base:           base{Now: noon, Original: m, Object: m.DeepCopy()},
		cluster:        &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		bootstrap:      reference{ref: ref("Config"), object: object("Config"), own: true},
		infrastructure: reference{ref: ref("Infra"), object: object("Infra"), own: true},
		node: nodeWith(map[corev1.NodeConditionType]corev1.ConditionStatus{
			corev1.NodeReady: "True", corev1.NodeMemoryPressure: "False", corev1.NodeDiskPressure: "False", corev1.NodePIDPressure: "False",
		}),
		sync: nodeSync{once: true},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func onBoth(s *scope, change func(*clusterv1.Machine)) {
	change(s.Original)
	change(s.Object)
}

func leaving(s *scope) {
	onBoth(s, func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) })
}

func withoutNode(s *scope) { s.node = nil }

func withAnnotation(key string) func(*scope) {
	return func(s *scope) {
		onBoth(s, func(m *clusterv1.Machine) { m.Annotations = map[string]string{key: ""} })
	}
}

var errNotFound = apierrors.NewNotFound(schema.GroupResource{Group: "g", Resource: "infras"}, "m")

// TestPureConditions: what each condition reports of a Machine, by what was read.
func TestPureConditions(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "m", errors.New("policy p"))
	known := func(conditionType, status, reason string, generation int64) func(*scope) {
		return func(s *scope) {
			onBoth(s, func(m *clusterv1.Machine) {
				meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
					Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, ObservedGeneration: generation,
				})
			})
		}
	}
	missing := func(change ...func(*reference)) func(*scope) {
		return func(s *scope) {
			s.infrastructure.object, s.infrastructure.err = external.Object{}, errNotFound
			onBoth(s, func(m *clusterv1.Machine) { m.Status.Initialization.InfrastructureProvisioned = nil })
			for _, c := range change {
				c(&s.infrastructure)
			}
		}
	}
	failing := func(field, value string) func(*scope) {
		return func(s *scope) {
			s.infrastructure.object.Contract = version.V1Beta1
			_ = unstructured.SetNestedField(s.infrastructure.object.Object, value, "status", field)
		}
	}
	config := func(field string, value any) func(*scope) {
		return func(s *scope) { _ = unstructured.SetNestedField(s.bootstrap.object.Object, value, "status", field) }
	}
	unprovisioned := func(s *scope) {
		onBoth(s, func(m *clusterv1.Machine) { m.Status.Initialization.InfrastructureProvisioned = nil })
	}
	noID := func(s *scope) {
		onBoth(s, func(m *clusterv1.Machine) { m.Spec.ProviderID, m.Status.NodeRef.Name = "", "" })
	}
	noLink := func(s *scope) { onBoth(s, func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }) }
	for name, test := range map[string]struct {
		given []func(*scope)
		want  map[string]string
	}{
		"all is well": {nil, map[string]string{
			"Paused": "False/NotPaused", "BootstrapConfigReady": "True/Ready", "InfrastructureReady": "True/Ready", "NodeReady": "True/NodeReady",
			"NodeHealthy": "True/NodeHealthy", "Deleting": "False/NotDeleting", "Updating": "False/NotUpdating", "UpToDate": "absent",
			"Ready": "True/Ready", "Available": "True/Available",
		}},
		"paused by annotation": {[]func(*scope){withAnnotation(clusterv1.PausedAnnotation)}, map[string]string{"Paused": "True/Paused the annotation cluster.x-k8s.io/paused", "Ready": "absent"}},
		"paused with the Cluster": {[]func(*scope){func(s *scope) { s.cluster.Spec.Paused = ptr.To(true) }},
			map[string]string{"Paused": "True/Paused spec.paused of Cluster c", "Ready": "absent"}},
		"paused without a Cluster": {[]func(*scope){withAnnotation(clusterv1.PausedAnnotation), func(s *scope) { s.cluster = nil }},
			map[string]string{"Paused": "True/Paused the annotation", "Ready": "absent"}},
		"no Cluster":              {[]func(*scope){func(s *scope) { s.cluster = nil }}, map[string]string{"Ready": "Unknown/ClusterDoesNotExist", "NodeReady": "absent"}},
		"no Cluster, it goes":     {[]func(*scope){leaving, func(s *scope) { s.cluster = nil }}, map[string]string{"Ready": "False/NotReady", "NodeReady": "True/NodeReady"}},
		"nothing was read":        {[]func(*scope){unfinalized(forbidden)}, map[string]string{"Ready": "Unknown/InternalError", "NodeReady": "absent", "Available": "False/NotReady"}},
		"a refusal, it goes":      {[]func(*scope){leaving, unfinalized(forbidden)}, map[string]string{"Deleting": "True/Deleting", "NodeReady": "True/NodeReady"}},
		"no refusal":              {[]func(*scope){unfinalized(nil)}, map[string]string{"NodeReady": "True/NodeReady"}},
		"refused, with finalizer": {[]func(*scope){func(s *scope) { s.refused = forbidden }}, map[string]string{"NodeReady": "True/NodeReady", "Ready": "True/InternalError"}},

		"it goes":                          {[]func(*scope){leaving}, map[string]string{"Deleting": "True/Deleting", "Ready": "False/NotReady * Deleting: Machine deletion in progress, stage: Deleting", "InfrastructureReady": "True/Ready"}},
		"it goes, a stage":                 {[]func(*scope){leaving, func(s *scope) { s.progress = deletion{"DrainingNode", "pods"} }}, map[string]string{"Deleting": "True/DrainingNode pods"}},
		"it goes, nothing new of it":       {[]func(*scope){leaving, known("Deleting", "True", "DrainingNode", 2)}, map[string]string{"Deleting": "True/DrainingNode"}},
		"it goes, a stage after another":   {[]func(*scope){leaving, known("Deleting", "True", "DrainingNode", 2), func(s *scope) { s.progress.reason = "DeletingNode" }}, map[string]string{"Deleting": "True/DeletingNode"}},
		"it goes, reported before to stay": {[]func(*scope){leaving, known("Deleting", "False", "NotDeleting", 2)}, map[string]string{"Deleting": "True/Deleting"}},

		"updated in place":       {[]func(*scope){withAnnotation(clusterv1.UpdateInProgressAnnotation)}, map[string]string{"Updating": "True/InPlaceUpdating", "Ready": "False/NotReady"}},
		"no data Secret":         {[]func(*scope){noConfig(false)}, map[string]string{"BootstrapConfigReady": "False/NotReady Neither"}},
		"a data Secret is given": {[]func(*scope){noConfig(true)}, map[string]string{"BootstrapConfigReady": "True/DataSecretProvided"}},
		"the config is not done": {[]func(*scope){func(s *scope) {
			onBoth(s, func(m *clusterv1.Machine) { m.Status.Initialization.BootstrapDataSecretCreated = nil })
		}}, map[string]string{"BootstrapConfigReady": "False/NotReady Waiting for Config m to create the bootstrap data"}},
		"a condition of the config that is no condition": {[]func(*scope){config("conditions", "x")}, map[string]string{"BootstrapConfigReady": "Unknown/InvalidConditionReported"}},

		"not provisioned":  {[]func(*scope){unprovisioned}, map[string]string{"InfrastructureReady": "False/NotReady Waiting for Infra m to be provisioned"}},
		"recreated":        {[]func(*scope){func(s *scope) { s.infrastructure.recreated = true }}, map[string]string{"InfrastructureReady": "False/NotReady Waiting for"}},
		"about to be made": {[]func(*scope){missing(func(r *reference) { r.beingCreated = true })}, map[string]string{"InfrastructureReady": "False/BeingCreated"}},
		"missing":          {[]func(*scope){missing()}, map[string]string{"InfrastructureReady": "False/ObjectDoesNotExist"}},
		"missing, seen":    {[]func(*scope){missing(func(r *reference) { r.seen = true })}, map[string]string{"InfrastructureReady": "False/ObjectDeleted"}},
		"missing, was provisioned": {[]func(*scope){missing(), func(s *scope) {
			onBoth(s, func(m *clusterv1.Machine) { m.Status.Initialization.InfrastructureProvisioned = ptr.To(true) })
		}}, map[string]string{"InfrastructureReady": "False/ObjectDeleted"}},
		"missing, it goes":                    {[]func(*scope){missing(), leaving}, map[string]string{"InfrastructureReady": "False/ObjectDeleted"}},
		"missing, was not ready":              {[]func(*scope){missing(), known("InfrastructureReady", "False", "NotReady", 2)}, map[string]string{"InfrastructureReady": "False/ObjectDeleted"}},
		"missing, another was not ready":      {[]func(*scope){missing(), known("InfrastructureReady", "False", "NotReady", 1)}, map[string]string{"InfrastructureReady": "False/ObjectDoesNotExist"}},
		"missing, another reported something": {[]func(*scope){missing(), known("InfrastructureReady", "False", "Booting", 1)}, map[string]string{"InfrastructureReady": "False/ObjectDeleted"}},
		"missing, and was missing":            {[]func(*scope){missing(), known("InfrastructureReady", "False", "ObjectDoesNotExist", 2)}, map[string]string{"InfrastructureReady": "False/ObjectDoesNotExist"}},
		"unreadable, was provisioned":         {[]func(*scope){func(s *scope) { s.infrastructure.object, s.infrastructure.err = external.Object{}, errors.New("boom") }}, map[string]string{"InfrastructureReady": "Unknown/InternalError"}},
		"nothing is known":                    {[]func(*scope){func(s *scope) { s.infrastructure.object = external.Object{} }}, map[string]string{"InfrastructureReady": "absent"}},
		"failed, with a reason":               {[]func(*scope){failing("failureReason", "Broken")}, map[string]string{"InfrastructureReady": "False/Broken"}},
		"failed, with a message":              {[]func(*scope){failing("failureMessage", "the disk is gone")}, map[string]string{"InfrastructureReady": "False/NotReady the disk is gone"}},
		"what it reports is not accepted":     {[]func(*scope){func(s *scope) { s.infrastructure.invalidFields = []string{"address 1 is wrong"} }}, map[string]string{"InfrastructureReady": "True/Ready Infra m"}},

		"the target is out of reach": {[]func(*scope){withoutNode, noLink, func(s *scope) { s.disconnection = &shared.NotConnectedError{Message: "no answer"} }}, map[string]string{"NodeReady": "Unknown/InspectionFailed Waiting for the connection"}},
		"another Machine's Node":     {[]func(*scope){withoutNode, func(s *scope) { s.nodeErr = &OtherMachineError{} }}, map[string]string{"NodeReady": "False/NodeOfAnotherMachine"}},
		"several Nodes":              {[]func(*scope){withoutNode, func(s *scope) { s.nodeErr = newSeveralNodesError("id", []string{"a", "b"}) }}, map[string]string{"NodeReady": "Unknown/InternalError"}},
		"the Node is gone":           {[]func(*scope){withoutNode}, map[string]string{"NodeReady": "False/NodeDeleted Node n has been deleted", "NodeHealthy": "False/NodeDeleted"}},
		"it goes without a Node":     {[]func(*scope){withoutNode, noLink, leaving}, map[string]string{"NodeReady": "Unknown/NodeDoesNotExist"}},
		"no provider ID":             {[]func(*scope){withoutNode, noID}, map[string]string{"NodeReady": "Unknown/InspectionFailed Waiting for Infra m to report its provider ID"}},
		"no Node yet":                {[]func(*scope){withoutNode, noLink, proven}, map[string]string{"NodeReady": "Unknown/InspectionFailed Waiting for a Node with the provider ID id"}},
		"no Node yet, and where to look": {[]func(*scope){withoutNode, noLink, proven, func(s *scope) { s.bootstrap.ref.Kind, s.bootstrap.ref.Name = "Boot", "b" }}, map[string]string{
			"NodeReady": "Unknown/InspectionFailed Waiting for a Node with the provider ID id. If none comes, see the conditions of Boot b"}},
		"an ID that is not reported":  {[]func(*scope){withoutNode, func(s *scope) { s.infrastructure.object = external.Object{} }, unprovisioned, noLink}, map[string]string{"NodeReady": "Unknown/InspectionFailed Waiting for Infra m to report the provider ID"}},
		"an unproven ID, and it goes": {[]func(*scope){withoutNode, func(s *scope) { s.infrastructure.object = external.Object{} }, unprovisioned, noLink, leaving}, map[string]string{"NodeReady": "Unknown/NodeDoesNotExist"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := judged(test.given...)
			s.setConditions()
			g := NewWithT(t)
			g.Expect(s.Object.Status.Conditions).NotTo(ContainElement(HaveField("Type", "")))
			for conditionType, want := range test.want {
				got := stateOf(s.Object, conditionType)
				if found := meta.FindStatusCondition(s.Object.Status.Conditions, conditionType); found != nil {
					got += " " + found.Message
				}
				g.Expect(got).To(HavePrefix(want), conditionType)
			}
		})
	}
}

// proven has the infrastructure report the provider ID.
func proven(s *scope) {
	_ = unstructured.SetNestedField(s.infrastructure.object.Object, "id", "spec", "providerID")
	_ = unstructured.SetNestedField(s.infrastructure.object.Object, true, "status", "initialization", "provisioned")
}

func unfinalized(refused error) func(*scope) {
	return func(s *scope) {
		s.Original.Finalizers = nil
		s.refused = refused
	}
}

func noConfig(done bool) func(*scope) {
	return func(s *scope) {
		s.bootstrap = reference{}
		onBoth(s, func(m *clusterv1.Machine) {
			m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{}
			m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(done)
		})
	}
}

// TestPureSync: what NodeHealthy reports of a Node that is not synchronized.
func TestPureSync(t *testing.T) {
	healthy := conditions.True("NodeHealthy", "NodeHealthy", "")
	ill := conditions.False("NodeHealthy", "NodeNotHealthy", "* Node.DiskPressure: full")
	since := func(reason string) func(*scope) {
		return func(s *scope) {
			s.Original.Status.Conditions = []metav1.Condition{conditions.False("NodeHealthy", reason,
				"Labels, annotations and taints of Node n cannot be written since 2026-11-19T01:02:03Z: before")}
		}
	}
	failing := func(err error, once bool) func(*scope) {
		return func(s *scope) { s.sync = nodeSync{err: err, once: once} }
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("policy p"))
	for name, test := range map[string]struct {
		given   []func(*scope)
		node    metav1.Condition
		want    string
		message OmegaMatcher
	}{
		"in step":                           {nil, healthy, "True/NodeHealthy", BeEmpty()},
		"awaits, once in step":              {[]func(*scope){func(s *scope) { s.sync = nodeSync{once: true, awaited: "Infra m"} }}, healthy, "True/NodeHealthy", BeEmpty()},
		"awaits":                            {[]func(*scope){func(s *scope) { s.sync = nodeSync{awaited: "Infra m"} }}, healthy, "Unknown/InspectionFailed", HaveSuffix("are not synchronized before Infra m has been read")},
		"nothing to await":                  {[]func(*scope){func(s *scope) { s.sync = nodeSync{} }}, healthy, "True/NodeHealthy", BeEmpty()},
		"it goes":                           {[]func(*scope){failing(forbidden, false), leaving}, healthy, "True/NodeHealthy", BeEmpty()},
		"refused at first":                  {[]func(*scope){failing(forbidden, false)}, healthy, "False/NodeSyncFailed", And(ContainSubstring("since 2026-11-20T12:00:00Z: "), HaveSuffix("policy p"))},
		"refused at first, and ill":         {[]func(*scope){failing(forbidden, false)}, ill, "False/NodeSyncFailed", HaveSuffix("policy p\n* Node.DiskPressure: full")},
		"refused later":                     {[]func(*scope){failing(forbidden, true)}, healthy, "True/NodeSyncFailed", HaveSuffix("policy p")},
		"refused later, and ill":            {[]func(*scope){failing(forbidden, true)}, ill, "False/NodeNotHealthy", And(ContainSubstring("policy p"), HaveSuffix("full"))},
		"refused for long":                  {[]func(*scope){since("NodeSyncFailed"), failing(forbidden, false)}, healthy, "False/NodeSyncFailed", ContainSubstring("since 2026-11-19T01:02:03Z: ")},
		"what another writer wants":         {[]func(*scope){failing(&remote.ContestedError{}, true)}, healthy, "True/NodeSyncFailed", HaveSuffix((&remote.ContestedError{}).Error())},
		"a change that is not kept":         {[]func(*scope){failing(&NotKeptError{Lost: []string{"label a"}}, true)}, healthy, "True/NodeSyncFailed", ContainSubstring("did not keep label a")},
		"a refusal that says nothing of it": {[]func(*scope){failing(&apierrors.StatusError{}, true)}, healthy, "True/NodeSyncFailed", Not(HaveSuffix(": "))},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := judged(test.given...).withSync(test.node)
			g.Expect(string(got.Status) + "/" + got.Reason).To(Equal(test.want))
			g.Expect(got.Message).To(test.message)
		})
	}
	g := NewWithT(t)
	g.Expect(judged(since("NodeSyncFailed")).neverSynced()).To(BeTrue())
	g.Expect(judged(since("NodeNotHealthy")).neverSynced()).To(BeFalse())
	edited := judged(since("NodeSyncFailed"))
	edited.Original.Status.Conditions[0].Message = "Labels, annotations and taints of Node n cannot be written since everZ: before"
	g.Expect(edited.syncFailedSince()).To(Equal(noon), "a user has edited it")
}
