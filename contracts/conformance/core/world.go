package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// world is the state of one case: a Cluster with its Machines, and the findings.
type world struct {
	*Env
	ctx context.Context
	t   *conformance.T
	// id is the name of the Cluster and of what belongs to it.
	id string
}

// scenario returns a case. Rules without a finding are skipped, with the reason why the case ended early.
func scenario(name string, ids []rules.ID, run func(w *world)) conformance.Case[*Env] {
	look := func(ctx context.Context, t *conformance.T, env *Env) {
		w := &world{Env: env, ctx: ctx, t: t, id: env.name()}
		began := time.Now()
		t.SkipRest("", conformance.Early(func() { run(w) }))
		w.logf("%s: %s took %s", env.Contract, name, time.Since(began).Round(time.Millisecond))
	}
	return conformance.Case[*Env]{Name: name, Rules: ids, Method: rules.Behavioural, Run: look}
}

func (w *world) stop(reason string, args ...any) {
	w.t.Stop("%s", w.plain(fmt.Sprintf(reason, args...)))
}

// plain returns a text that is the same in every run, so that reports can be compared. The log has the real names.
func (w *world) plain(text string) string {
	pairs := []string{w.id, "{name}"}
	if strings.Contains(w.Namespace, w.Run) {
		pairs = append(pairs, w.Namespace, "{namespace}")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// must ends the case if a request of the suite failed.
func (w *world) must(err error, doing string) {
	if err != nil {
		w.stop("the suite failed %s: %v", doing, err)
	}
}

// check passes or fails a rule by what deviates from it.
func (w *world) check(rule rules.ID, expected, deviation string) bool {
	if deviation == "" {
		w.t.Pass(rule, "", "%s", w.plain(expected))
	} else {
		object := w.Namespace + "/" + w.id
		w.logf("%s: %s is not kept, %s: expected %s; seen: %s", w.Contract, rule, object, expected, deviation)
		w.t.Fail(rule, "", report.Failure{Expected: w.plain(expected), Seen: w.plain(deviation), Object: w.plain(object)})
	}
	return deviation == ""
}

// need ends the case if a precondition does not hold, which other cases verify.
func (w *world) need(deviation string) {
	if deviation != "" {
		w.stop("the core did not reach the start of this case: %s", deviation)
	}
}

// soon polls until nothing deviates, at most for the time in which a core has to react, and returns what still deviates.
func (w *world) soon(look func() string) string {
	return w.within(w.Timeouts.React.Duration, look)
}

func (w *world) within(limit time.Duration, look func() string) string {
	deadline := time.Now().Add(limit)
	for {
		deviation := look()
		if deviation == "" {
			return ""
		}
		if time.Now().After(deadline) {
			return deviation + fmt.Sprintf(" (after %s)", limit)
		}
		w.pause()
	}
}

// quiet polls for the time of Quiet, and returns the first deviation.
func (w *world) quiet(look func() string) string {
	for deadline := time.Now().Add(w.Timeouts.Quiet.Duration); time.Now().Before(deadline); w.pause() {
		if deviation := look(); deviation != "" {
			return deviation
		}
	}
	return look()
}

func (w *world) pause() {
	select {
	case <-w.ctx.Done():
		w.stop("the run was interrupted")
	case <-time.After(w.Timeouts.Poll.Duration):
	}
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: name}
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.Namespace, Name: name}
}

func (w *world) create(object client.Object) {
	w.own(object)
	w.must(w.Client.Create(w.ctx, object), fmt.Sprintf("to create %T %s", object, object.GetName()))
}

// change reads and patches an object.
func (w *world) change(object client.Object, apply func()) {
	w.must(w.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object), "to read "+object.GetName())
	before, _ := object.DeepCopyObject().(client.Object)
	apply()
	w.must(w.Client.Patch(w.ctx, object, client.MergeFrom(before)), "to change "+object.GetName())
}

// remove deletes an object.
func (w *world) remove(object client.Object, options ...client.DeleteOption) {
	w.must(client.IgnoreNotFound(w.Client.Delete(w.ctx, object, options...)), "to delete "+object.GetName())
}

// gone returns a deviation if an object still exists.
func (w *world) gone(object client.Object) string {
	current, _ := object.DeepCopyObject().(client.Object)
	return when(w.get(current), fmt.Sprintf("%T %s still exists", object, object.GetName()))
}

// get reads an object, and reports whether it exists. Failed requests are
// retried, and end the case when they persist.
func (w *world) get(object client.Object) bool {
	for begin := time.Now(); ; {
		err := w.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) == nil {
			return err == nil
		}
		if w.ctx.Err() != nil || time.Since(begin) > w.Timeouts.React.Duration {
			w.stop("the suite cannot read %T %s: %v", object, object.GetName(), err)
		}
		select {
		case <-w.ctx.Done():
		case <-time.After(w.Timeouts.Poll.Duration):
		}
	}
}

// staying returns a deviation if an object is gone, or deleted.
func (w *world) staying(object client.Object) string {
	current, _ := object.DeepCopyObject().(client.Object)
	if !w.get(current) {
		return object.GetName() + " is gone"
	}
	if current.GetDeletionTimestamp() != nil {
		return fmt.Sprintf("%s %s is deleted", current.GetObjectKind().GroupVersionKind().Kind, current.GetName())
	}
	return ""
}

// deleted returns a deviation if an object exists and is not deleted.
func (w *world) deleted(object client.Object) string {
	if w.staying(object) == "" {
		return object.GetName() + " is not deleted"
	}
	return ""
}

// target is the kubeconfig with which the core reaches the management cluster as the workload cluster.
func (w *world) target() ([]byte, error) {
	if len(w.TargetKubeconfig) > 0 {
		return w.TargetKubeconfig, nil
	}
	return kubeconfigOf(w.Config)
}

// kubeconfig creates the Secret with which the core reaches the workload cluster.
func (w *world) kubeconfig(cluster string) *corev1.Secret {
	content, err := w.target()
	w.must(err, "to create a kubeconfig")
	return w.kubeconfigSecret(cluster, content)
}

// nowhere creates that Secret with an address at which no server listens.
func (w *world) nowhere() *corev1.Secret {
	content, err := kubeconfigOf(&rest.Config{Host: "https://127.0.0.1:1"})
	w.must(err, "to create a kubeconfig")
	return w.kubeconfigSecret(w.id, content)
}

func (w *world) kubeconfigSecret(cluster string, content []byte) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: w.meta(cluster + "-kubeconfig"), Type: clusterv1.ClusterSecretType}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: cluster}
	secret.Data = map[string][]byte{"value": content}
	w.create(secret)
	return secret
}

// kubeconfigOf returns a kubeconfig without references to files, which the core does not have.
func kubeconfigOf(config *rest.Config) ([]byte, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["target"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure, TLSServerName: config.ServerName,
	}
	kubeconfig.AuthInfos["suite"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		Username: config.Username, Password: config.Password,
	}
	kubeconfig.Contexts["target"] = &clientcmdapi.Context{Cluster: "target", AuthInfo: "suite"}
	kubeconfig.CurrentContext = "target"
	return clientcmd.Write(*kubeconfig)
}
