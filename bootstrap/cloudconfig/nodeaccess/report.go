package nodeaccess

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// maxReport is how many characters of a machine's report are shown.
const maxReport = 256

// Report is what a machine that has not joined has last reported, in its Lease: the holder's identity is a line of its
// downloader's log. It is a claim of the holder of the download token, for people only.
type Report struct {
	// Text is cut and has no control characters.
	Text string
	// At is the time by the machine's own clock; zero if it has given none.
	At time.Time
}

// EnsureReport creates the Lease that the machine may write its reports to. It returns false where the identity in the Cluster's
// kubeconfig may not, as with an older config/target-cluster, or an admission policy denies it: the machine joins without reports.
func (m *Machine) EnsureReport(ctx context.Context) (bool, error) {
	lease := &coordinationv1.Lease{ObjectMeta: m.Names.meta(m.NodesNamespace(), m.Names.Object(), m.Config)}
	switch err := m.Client.Create(ctx, lease); {
	case err == nil:
		return true, nil
	case persist.NameTaken(err):
		// Nothing is written to a Lease of another owner.
		err = m.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease)
		return err == nil && m.Names.Owns(lease), errors.Wrapf(client.IgnoreNotFound(err), "reading Lease %s in the target cluster", lease.Name)
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || persist.Denied(err):
		return false, nil
	default:
		return false, errors.Wrapf(err, "creating Lease %s in the target cluster", lease.Name)
	}
}

// ReadReport returns what the machine has reported; false if it has not, or can not.
func (m *Machine) ReadReport(ctx context.Context) (Report, bool, error) {
	lease := &coordinationv1.Lease{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.NodesNamespace(), Name: m.Names.Object()}, lease)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return Report{}, false, nil
	}
	if err != nil {
		return Report{}, false, errors.Wrapf(err, "reading Lease %s in the target cluster", m.Names.Object())
	}
	text := printable(ptr.Deref(lease.Spec.HolderIdentity, ""))
	if !m.Names.Owns(lease) || text == "" {
		return Report{}, false, nil
	}
	report := Report{Text: text}
	if lease.Spec.RenewTime != nil {
		report.At = lease.Spec.RenewTime.Time
	}
	return report, true, nil
}

// RemoveReport deletes the Lease. Where that is forbidden there is none.
func (m *Machine) RemoveReport(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = m.NodesNamespace(), m.Names.Object()
	if err := m.remove(ctx, "Lease", lease); !apierrors.IsForbidden(errors.Cause(err)) {
		return err
	}
	return nil
}

// printable truncates a foreign text and replaces what is not to be printed.
func printable(text string) string {
	var out strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxReport {
			return out.String() + "…"
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		out.WriteRune(r)
	}
	return strings.TrimSpace(out.String())
}
