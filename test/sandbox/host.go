package sandbox

import (
	"context"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// hostInterval is how often a Host reads the Deployments.
const hostInterval = 250 * time.Millisecond

// Host replaces the Deployment controller, a scheduler and kubelets for the managers that are installed in a cluster: for each Deployment
// it runs one process, with its flags, environment and ServiceAccount, from bin/ unless Options.Images has it run from the image. The
// process is restarted when the Deployment changes, and when it exits; it is stopped with the Deployment, which is Available while the
// process is ready. Services lead to the process, too, so webhooks are called by the name that their certificate must have.
type Host struct {
	cluster      *Cluster
	sandbox      *Sandbox
	dir, logDir  string
	address      string
	cancel       context.CancelFunc
	done         chan struct{}
	mu           sync.Mutex
	hosted       map[place]*hosted
	restarts     int
	lastFailures map[string]string
}

// place is a container of a Deployment.
type place struct {
	deployment types.UID
	container  string
}

// HostDeployments runs the managers that are or will be installed in one of the clusters, until the sandbox stops.
func (s *Sandbox) HostDeployments(cluster *Cluster) (*Host, error) {
	address, err := hostAddress()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &Host{
		cluster: cluster, address: address, cancel: cancel, done: make(chan struct{}), hosted: map[place]*hosted{},
		lastFailures: map[string]string{},
		sandbox:      s,
		dir:          filepath.Join(s.dir, "hosts-"+cluster.Name()), logDir: s.options.LogDir,
	}
	s.hosts = append(s.hosts, h)
	go h.run(ctx)
	return h, nil
}

// hostAddress is an address of this machine that an EndpointSlice may hold, which none of loopback is.
func hostAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", errors.Wrap(err, "listing the addresses of this machine")
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no IPv4 address but loopback, and a Service cannot lead there")
}

// Programs are the images of the Deployments whose processes are ready, in order.
func (h *Host) Programs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var images []string
	for _, p := range h.hosted {
		if p.ready {
			images = append(images, p.image)
		}
	}
	slices.Sort(images)
	return images
}

// Restarts is how often a process has exited by itself, and the last errors of Deployments that could not be run.
func (h *Host) Restarts() (int, map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restarts, h.lastFailures
}

func (h *Host) run(ctx context.Context) {
	defer close(h.done)
	ticker := time.NewTicker(hostInterval)
	defer ticker.Stop()
	for {
		h.sync(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// sync reconciles processes with Deployments. What fails is tried again at the next interval.
func (h *Host) sync(ctx context.Context) {
	list := &appsv1.DeploymentList{}
	if err := h.cluster.Client.List(ctx, list); err != nil {
		return
	}
	there := map[types.UID]bool{}
	for i := range list.Items {
		d := &list.Items[i]
		there[d.UID] = d.DeletionTimestamp == nil && h.sandbox.runs(d)
		if there[d.UID] {
			h.note(d, h.host(ctx, d))
		}
	}
	h.mu.Lock()
	var gone []*hosted
	for at, p := range h.hosted {
		if !there[at.deployment] {
			gone = append(gone, p)
			delete(h.hosted, at)
		}
	}
	h.mu.Unlock()
	for _, p := range gone {
		p.process.Stop(managerGrace)
	}
}

// runs reports whether the Deployment is one of managers: those of a workload run on the machines, if there are any.
func (s *Sandbox) runs(d *appsv1.Deployment) bool {
	return !slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return !strings.HasPrefix(path.Base(c.Image), "millwright-") && s.options.Programs[imageName(c.Image)] == ""
	})
}

func (h *Host) note(d *appsv1.Deployment, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.lastFailures, d.Name)
	if err != nil {
		h.lastFailures[d.Name] = err.Error()
	}
}

// host runs the Deployment as it is now, and reports in its status whether it is ready.
func (h *Host) host(ctx context.Context, d *appsv1.Deployment) error {
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		for i := range d.Spec.Template.Spec.Containers {
			h.stop(place{d.UID, d.Spec.Template.Spec.Containers[i].Name})
		}
		return h.report(ctx, d, &appsv1.DeploymentStatus{})
	}
	ready := true
	for i := range d.Spec.Template.Spec.Containers {
		p, err := h.ensure(ctx, d, &d.Spec.Template.Spec.Containers[i])
		if err != nil {
			return err
		}
		// As a kubelet does periodically: the current content of Secrets.
		if err := p.pod.refresh(ctx); err != nil {
			return err
		}
		now := get(ctx, "http://"+p.health+"/readyz") == nil
		h.mu.Lock()
		p.ready = now
		h.mu.Unlock()
		ready = ready && now
	}
	status := &appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1}
	if ready {
		status.ReadyReplicas, status.AvailableReplicas = 1, 1
	}
	return h.report(ctx, d, status)
}

// ensure returns the process of a container, which is started if there is none of the Deployment as it is now.
func (h *Host) ensure(ctx context.Context, d *appsv1.Deployment, container *corev1.Container) (*hosted, error) {
	at := place{d.UID, container.Name}
	h.mu.Lock()
	p := h.hosted[at]
	if p != nil && !p.process.Running() {
		h.restarts++
	}
	h.mu.Unlock()
	if p != nil && p.generation == d.Generation && p.process.Running() {
		return p, nil
	}
	h.stop(at)
	p, err := h.start(ctx, d, container)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hosted[at] = p
	return p, nil
}

// stop stops the process of a container, if there is one.
func (h *Host) stop(at place) {
	h.mu.Lock()
	p := h.hosted[at]
	delete(h.hosted, at)
	h.mu.Unlock()
	if p != nil {
		p.process.Stop(managerGrace)
	}
}

// report writes the status of the Deployment.
func (h *Host) report(ctx context.Context, d *appsv1.Deployment, status *appsv1.DeploymentStatus) error {
	available := corev1.ConditionFalse
	if status.ReadyReplicas == *d.Spec.Replicas {
		available = corev1.ConditionTrue
	}
	status.ObservedGeneration = d.Generation
	status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available, Reason: "Hosted"}}
	if equality.Semantic.DeepEqual(&d.Status, status) {
		return nil
	}
	d.Status = *status
	return errors.Wrapf(h.cluster.Client.Status().Update(ctx, d), "writing the status of Deployment %s", d.Name)
}

// kill kills all processes.
func (h *Host) kill() {
	h.cancel()
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.hosted {
		p.process.Kill()
	}
}
