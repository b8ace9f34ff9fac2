package behaviour

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// bootLife is the lifecycle of bootstrap data.
func bootLife() conformance.Case[*Env] {
	ids := []rules.ID{
		"BC-002", "BC-003", "BC-004", "BC-006", "BC-009", "BC-010", "BC-011", "BC-012", "BC-013", "BC-015", "BC-017", "BC-020",
		"BC-024", "BC-028",
	}
	return scenario("Lifecycle", ids, func(w *world) {
		w.config(all, nil, false)
		if !w.awaitData() {
			w.noData()
			return
		}
		secret := w.secret(w.secretName(w.object()))
		path := w.boot().DataSecretCreatedPath().String()
		if secret == nil {
			w.fail("BC-002", path+" is true once the Secret exists", "it is true, and there is no Secret "+w.secretName(w.object()))
			return
		}
		w.pass("BC-002", "%s became true, and the Secret in status.dataSecretName exists", path)
		w.nameInTime()
		w.content(secret)
		w.belongs(secret)
		w.readyFollows("BC-004", "BC-015")
		w.notPaused("BC-024")
		w.staysCreated(secret)
		w.showsNoSecrets("BC-028")
	})
}

// noData fails the rule about what is missing.
func (w *world) noData() {
	object := w.object()
	seen := fmt.Sprintf("after %s, status.dataSecretName is %q and %s is %t",
		w.Timeouts.Provision.Duration, w.secretName(object), w.boot().DataSecretCreatedPath(), w.created(object))
	if status, text := condition(object, clusterv1.ReadyCondition); status != "" {
		seen += fmt.Sprintf("; condition Ready is %s: %s", status, text)
	}
	if w.created(object) {
		w.fail("BC-003", "status.dataSecretName has the name of the Secret", seen)
		return
	}
	w.fail("BC-002", w.boot().DataSecretCreatedPath().String()+" becomes true once owner, Cluster and infrastructure exist", seen)
}

// nameInTime checks every version of the object.
func (w *world) nameInTime() {
	versions, _ := w.recorder.of(w.id)
	for _, v := range versions {
		if w.created(v.Unstructured) && w.secretName(v.Unstructured) == "" {
			w.fail("BC-003", "status.dataSecretName is set when "+w.boot().DataSecretCreatedPath().String()+" becomes true",
				"in "+w.version(v.Unstructured)+" it is true and status.dataSecretName is not set")
			return
		}
	}
	w.pass("BC-003", "status.dataSecretName was %s in every version with data", w.secretName(w.object()))
}

// sentinel matches the file that shows that a machine has joined, on Linux or Windows, with any form of slashes.
var sentinel = regexp.MustCompile(`run[/\\]+cluster-api[/\\]+bootstrap-success\.complete`)

// content checks the content of the Secret.
func (w *world) content(secret *corev1.Secret) {
	keys := make([]string, 0, len(secret.Data))
	for key := range secret.Data {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	value := secret.Data["value"]
	w.check(len(value) > 0, "BC-006", "the data are under the key value",
		fmt.Sprintf("value has data: %t; the keys are %v", len(value) > 0, keys))
	format := string(secret.Data["format"])
	w.check(format != "", "BC-012", "the key format has the format of the data", fmt.Sprintf("format is %q; the keys are %v", format, keys))
	if len(value) == 0 {
		w.skip("BC-017", "there are no data under the key value")
		return
	}
	w.check(sentinel.Match(value), "BC-017", "the data contain /run/cluster-api/bootstrap-success.complete",
		fmt.Sprintf("the data contain it: %t", sentinel.Match(value)))
}

// belongs checks label, owner and type of the Secret.
func (w *world) belongs(secret *corev1.Secret) {
	label := secret.Labels[clusterv1.ClusterNameLabel]
	w.check(label == w.id, "BC-009", "the label "+clusterv1.ClusterNameLabel+" is "+w.id, fmt.Sprintf("it is %q", label))
	controller, seen := metav1.GetControllerOf(secret), "it has no controller"
	if controller != nil {
		seen = "its controller is " + controller.Kind + " " + controller.Name
	}
	own := controller != nil && controller.Kind == w.Kind.Kind && slices.Contains(w.uids, string(controller.UID))
	w.check(own, "BC-010", "the controller owner of the Secret is the object", seen)
	w.check(secret.Type == clusterv1.ClusterSecretType, "BC-011", "the type of the Secret is "+string(clusterv1.ClusterSecretType),
		fmt.Sprintf("it is %q", secret.Type))
}

// staysCreated triggers reconciles, and checks what must not change.
func (w *world) staysCreated(secret *corev1.Secret) {
	for range 3 {
		w.touch()
	}
	w.quiet(func() string { return "" })
	versions, _ := w.recorder.of(w.id)
	was, lost := false, ""
	for _, v := range versions {
		if now := w.created(v.Unstructured); was && !now && lost == "" {
			lost = "it is no longer true in " + w.version(v.Unstructured)
		}
		was = was || w.created(v.Unstructured)
	}
	evidence := "in every version of the object, across changes of annotations"
	w.unless(lost, "BC-013", w.boot().DataSecretCreatedPath().String()+" stays true", evidence)
	names := w.dataSecrets()
	changed := ""
	switch {
	case !sameData(secret, w.secret(secret.Name)):
		changed = "the data have changed"
	case len(names) > 1:
		changed = fmt.Sprintf("there are the Secrets %v", names)
	}
	w.unless(changed, "BC-020", "there is one Secret, and its data do not change", evidence)
}

// token matches a token with which kubeadm and others join.
var token = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// tokensIn returns the secrets in bootstrap data of any format: the data as a whole, and tokens.
func tokensIn(secret *corev1.Secret) []string {
	value := string(secret.Data["value"])
	found := token.FindAllString(value, -1)
	if text := strings.TrimSpace(value); len(text) >= shortest {
		found = append(found, text)
	}
	return found
}
