package interruption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver/inframachine"
)

const at = "2026-11-23T10:00:00Z"

// message is an event as EventBridge sends it to a queue.
func message(source, kind, region, time, instance string) string {
	return fmt.Sprintf(`{"version":"0","id":"1e5527d7-bb36-4607-3370-4164db56a40e","detail-type":%q,"source":%q,"account":"123456789012",
		"time":%q,"region":%q,"resources":["arn:aws:ec2:%s:instance/%s"],"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
		kind, source, time, region, region, instance, instance)
}

func TestParse(t *testing.T) {
	when := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		body string
		want event
		err  string
	}{
		"interruption": {body: message("aws.ec2", detailInterruption, "us-east-1", at, "i-0123456789abcdef0"), want: event{
			instance: "i-0123456789abcdef0", region: "us-east-1", kind: inframachine.NoticeInterruption, at: when,
			deadline: when.Add(2 * time.Minute)}},
		"rebalance": {body: message("aws.ec2", detailRebalance, "us-east-1", at, "i-0123456789abcdef0"), want: event{
			instance: "i-0123456789abcdef0", region: "us-east-1", kind: inframachine.NoticeRebalance, at: when}},
		"state change":         {body: message("aws.ec2", "EC2 Instance State-change Notification", "us-east-1", at, "i-0123456789abcdef0"), err: errIgnored.Error()},
		"another source":       {body: message("my.app", detailInterruption, "us-east-1", at, "i-0123456789abcdef0"), err: errIgnored.Error()},
		"no instance":          {body: message("aws.ec2", detailInterruption, "us-east-1", at, ""), err: "names no instance"},
		"no instance ID":       {body: message("aws.ec2", detailInterruption, "us-east-1", at, "i-*"), err: "names no instance"},
		"no region":            {body: message("aws.ec2", detailInterruption, "", at, "i-0123456789abcdef0"), err: "names no instance"},
		"no time":              {body: `{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","region":"a","detail":{"instance-id":"i-0123456789abcdef0"}}`, err: "names no instance"},
		"a time that is none":  {body: message("aws.ec2", detailInterruption, "us-east-1", "now", "i-0123456789abcdef0"), err: "not an EventBridge event"},
		"no JSON":              {body: "s3cret", err: "not an EventBridge event"},
		"nothing":              {err: "not an EventBridge event"},
		"other JSON":           {body: `[1]`, err: "not an EventBridge event"},
		"a detail of its own":  {body: `{"source":"aws.ec2","detail":"s3cret"}`, err: "not an EventBridge event"},
		"too long":             {body: `{"source":"` + strings.Repeat("x", maxBody), err: "bytes"},
		"deeper than is right": {body: strings.Repeat("[", maxBody), err: "not an EventBridge event"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := parse(test.body)
			if test.err != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(test.err), Not(ContainSubstring("s3cret")))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestOptions(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://sqs.us-east-1.amazonaws.com/123456789012/millwright":      true,
		"https://sqs.cn-north-1.amazonaws.com.cn/123456789012/millwright":  true,
		"http://127.0.0.1:9324/000000000000/q":                             true,
		"arn:aws:sqs:us-east-1:123456789012:millwright":                    false,
		"https://sqs.us-east-1.amazonaws.com/123456789012/millwright.fifo": false,
		"https://sqs.us-east-1.amazonaws.com/millwright":                   false,
		"https://user@sqs.us-east-1.amazonaws.com/123456789012/millwright": false,
		"": false,
	} {
		g := NewWithT(t)
		err := (&Options{Queues: []string{url}, Action: ActionDelete}).Validate(false)
		g.Expect(err == nil).To(Equal(ok), "%s: %v", url, err)
		if !ok {
			g.Expect(err).To(MatchError(ContainSubstring("--interruption-queue")))
		}
	}
	g := NewWithT(t)
	g.Expect((&Options{Action: "drain"}).Validate(false)).
		To(MatchError(ContainSubstring(`--interruption-action is "drain": give delete or report`)))
	g.Expect((&Options{Action: ActionReport}).Validate(true)).To(Succeed())
	queue := &Options{Queues: []string{"https://sqs.us-east-1.amazonaws.com/123456789012/millwright"}, Action: ActionReport}
	g.Expect(queue.Validate(true)).To(MatchError(And(ContainSubstring("--interruption-queue"), ContainSubstring("--require-identity"))))
	g.Expect(queueRegion.FindStringSubmatch("sqs.eu-west-1.amazonaws.com")[1]).To(Equal("eu-west-1"))
	g.Expect(queueRegion.FindStringSubmatch("127.0.0.1")).To(BeNil())
}
