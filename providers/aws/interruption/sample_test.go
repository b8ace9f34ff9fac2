package interruption

import (
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

// The sample's rule sends what is handled, nothing else may send, and the provider gets the rights for the calls that it makes.
func TestSampleQueue(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../../config/samples/aws/interruption-queue.json.tmpl")
	g.Expect(err).NotTo(HaveOccurred())
	type policy struct {
		Statement []struct {
			Effect    string
			Action    any
			Principal map[string]string
			Condition map[string]map[string]any
		}
	}
	var sample struct {
		Resources struct {
			Announced struct {
				Properties struct {
					EventPattern map[string][]string
				}
			}
			OnlyTheRuleSends, ProviderReceives struct {
				Properties struct{ PolicyDocument policy }
			}
		}
	}
	g.Expect(json.Unmarshal(text, &sample)).To(Succeed())
	g.Expect(sample.Resources.Announced.Properties.EventPattern).To(Equal(map[string][]string{
		"source": {sourceEC2}, "detail-type": {detailInterruption, detailRebalance},
	}))
	send := sample.Resources.OnlyTheRuleSends.Properties.PolicyDocument.Statement
	g.Expect(send).To(HaveLen(1))
	g.Expect(send[0].Principal).To(Equal(map[string]string{"Service": "events.amazonaws.com"}))
	g.Expect(send[0].Condition["ArnEquals"]).To(HaveKey("aws:SourceArn"))
	receive := sample.Resources.ProviderReceives.Properties.PolicyDocument.Statement
	g.Expect(receive).To(HaveLen(1))
	g.Expect(receive[0].Action).To(ConsistOf("sqs:ReceiveMessage", "sqs:DeleteMessage"), "DeleteMessageBatch needs sqs:DeleteMessage")
}
