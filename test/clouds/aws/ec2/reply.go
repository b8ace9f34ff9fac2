package ec2

import (
	"encoding/xml"
	"net/http"
	"time"
)

// namespace is the XML namespace of the one version of the API.
const namespace = "http://ec2.amazonaws.com/doc/" + apiVersion + "/"

const apiVersion = "2016-11-15"

// reply is the body of a successful answer.
type reply interface{ identify(requestID string) }

// envelope is what every successful answer begins with.
type envelope struct {
	RequestID string `xml:"requestId"`
}

func (e *envelope) identify(id string) { e.RequestID = id }

// returnReply is the answer of the actions that return only success.
type returnReply struct {
	envelope
	Return bool `xml:"return"`
}

type xmlTag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type xmlGroup struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

func writeReply(w http.ResponseWriter, action string, body reply, requestID string) {
	body.identify(requestID)
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.Header().Set("X-Amzn-Requestid", requestID)
	_, _ = w.Write([]byte(xml.Header))
	start := xml.StartElement{Name: xml.Name{Space: namespace, Local: action + "Response"}}
	_ = xml.NewEncoder(w).EncodeElement(body, start)
}

// errorReply is an error answer.
type errorReply struct {
	XMLName   xml.Name `xml:"Response"`
	Code      string   `xml:"Errors>Error>Code"`
	Message   string   `xml:"Errors>Error>Message"`
	RequestID string   `xml:"RequestID"`
}

func writeError(w http.ResponseWriter, e *apiError, requestID string) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.Header().Set("X-Amzn-Requestid", requestID)
	w.WriteHeader(e.status)
	_, _ = w.Write([]byte(xml.Header))
	_ = xml.NewEncoder(w).Encode(errorReply{Code: e.code, Message: e.message, RequestID: requestID})
}

// xmlTime is a time in EC2's form.
func xmlTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func xmlTags(tags map[string]string) []xmlTag {
	out := make([]xmlTag, 0, len(tags))
	for _, k := range sortedKeys(tags) {
		out = append(out, xmlTag{Key: k, Value: tags[k]})
	}
	return out
}

func xmlGroups(groups []*SecurityGroup) []xmlGroup {
	out := make([]xmlGroup, 0, len(groups))
	for _, g := range groups {
		out = append(out, xmlGroup{ID: g.ID, Name: g.Name})
	}
	return out
}
