package standin

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"encoding/json"
)

// Heartbeat updates the status of a Node as its kubelet does when nothing has changed but the time.
func Heartbeat(ctx context.Context, c client.Client, node string, now metav1.Time) error {
	beats := make([]map[string]any, 0, len(healthyConditions))
	for _, condition := range healthyConditions {
		beats = append(beats, map[string]any{"type": condition.kind, "lastHeartbeatTime": now})
	}
	content, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": beats}})
	if err != nil {
		return errors.Wrap(err, "encoding a heartbeat")
	}
	target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	patch := client.RawPatch(types.StrategicMergePatchType, content)
	return errors.Wrapf(c.Status().Patch(ctx, target, patch), "sending the heartbeat of Node %s", node)
}
