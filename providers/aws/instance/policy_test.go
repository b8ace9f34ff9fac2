package instance

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	. "github.com/onsi/gomega"
)

// texts is a string or a list of them, as IAM has it.
type texts []string

func (l *texts) UnmarshalJSON(data []byte) error {
	var one string
	if err := json.Unmarshal(data, &one); err == nil {
		*l = texts{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

type statement struct {
	Action    texts
	Resource  texts
	Condition map[string]map[string]string
}

// The sample policy grants the calls of the driver and no others, and what ends or marks instances only with the mark.
func TestSamplePolicyEndsOnlyWhatIsMarked(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../../config/samples/aws/iam-policy.json.tmpl")
	g.Expect(err).NotTo(HaveOccurred())
	var policy struct{ Statement []statement }
	g.Expect(json.Unmarshal(text, &policy)).To(Succeed())

	granted, tagging := map[string]statement{}, []map[string]map[string]string{}
	for _, s := range policy.Statement {
		for _, action := range s.Action {
			granted[action] = s
			if action == "ec2:CreateTags" {
				tagging = append(tagging, s.Condition)
			}
		}
	}
	end := granted["ec2:TerminateInstances"].Condition
	g.Expect(end["Null"]).To(HaveKeyWithValue("aws:ResourceTag/"+TagOwnerUID, "false"))
	g.Expect(end["StringLike"]).To(HaveKey("aws:ResourceTag/" + TagMachine))
	for _, action := range []string{"ec2:DeleteVolume", "ec2:DeleteNetworkInterface", "ec2:ModifyInstanceAttribute",
		"ec2:ModifyNetworkInterfaceAttribute"} {
		g.Expect(granted[action].Condition).To(Equal(end), action)
	}
	lineageOnly := maps.Clone(end)
	lineageOnly["ForAllValues:StringEquals"] = map[string]string{"aws:TagKeys": TagLineage}
	g.Expect(tagging).To(ConsistOf(
		map[string]map[string]string{"StringEquals": {"ec2:CreateAction": "RunInstances"}}, lineageOnly,
	), "the provider cannot mark what it has not launched, and of what is marked it can write the lineage alone")

	want := []string{"iam:PassRole"}
	api := reflect.TypeFor[API]()
	for i := range api.NumMethod() {
		service := "ec2"
		if api.Method(i).Type.In(1) == reflect.TypeFor[*ssm.GetParameterInput]() {
			service = "ssm"
		}
		want = append(want, service+":"+api.Method(i).Name)
	}
	var got []string
	for action := range granted {
		got = append(got, action)
	}
	slices.Sort(got)
	g.Expect(got).To(ConsistOf(want))
}
