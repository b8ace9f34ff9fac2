// Package conditions sets, reads and summarizes metav1.Conditions. All functions are pure; the time is
// handed in.
package conditions

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// True returns a condition with the status True; what it does not name is filled in by Set.
func True(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False returns a condition with the status False.
func False(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown returns a condition with the status Unknown.
func Unknown(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// MaxMessage is how many bytes a message may have; the API allows as many characters.
const MaxMessage = 32768

// cut is how a message ends of which a part was left out.
const cut = "…"

// Message shortens a message to what the API allows. Messages repeat what others write, who know no such limit, and one
// that is too long would make the API server refuse the whole status. What is no UTF-8 is replaced, as it would be in JSON.
func Message(message string) string { return Cut(strings.ToValidUTF8(message, "\uFFFD"), MaxMessage) }

// Cut shortens a text to that many bytes at most, at the border of a character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len(cut)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cut
}

// Set puts the condition into the list. The transition time becomes now when the status differs from the one
// before, and stays otherwise. generation is that of the object which was judged. Its message is shortened where needed.
func Set(list *[]metav1.Condition, condition metav1.Condition, generation int64, now time.Time) {
	condition.Message = Message(condition.Message)
	condition.ObservedGeneration = generation
	condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	meta.SetStatusCondition(list, condition)
}

// Changes reports whether Set would change anything but the observed generation.
func Changes(list []metav1.Condition, condition metav1.Condition) bool {
	have := meta.FindStatusCondition(list, condition.Type)
	return have == nil || have.Status != condition.Status || have.Reason != condition.Reason || have.Message != Message(condition.Message)
}

// Part is one condition that goes into a summary.
type Part struct {
	// Type is the type of the condition.
	Type string
	// Negative means that False is the good status, as for Deleting.
	Negative bool
	// Optional means that the condition counts only when present.
	Optional bool
	// Override replaces the message of the condition when it is not empty.
	Override string
}

// Summary is how a summarized condition is called.
type Summary struct {
	// Type is the type of the resulting condition.
	Type string
	// Good, Bad and Unknown are the reasons for the status True, False and Unknown.
	Good, Bad, Unknown string
}

// Summarize joins conditions into one: False when one of the parts is bad, else Unknown when one is unknown or
// missing, else True. The message has one line for each part that is not good, in the order of the parts.
func Summarize(list []metav1.Condition, as Summary, parts ...Part) metav1.Condition {
	bad, unknown := false, false
	var lines []string
	for _, part := range parts {
		condition := meta.FindStatusCondition(list, part.Type)
		if condition == nil {
			if !part.Optional {
				unknown = true
				lines = append(lines, "* "+part.Type+": not reported yet")
			}
			continue
		}
		switch {
		case good(condition.Status, part.Negative):
			continue
		case condition.Status == metav1.ConditionUnknown:
			unknown = true
		default:
			bad = true
		}
		lines = append(lines, line(part, condition))
	}
	message := strings.Join(lines, "\n")
	switch {
	case bad:
		return False(as.Type, as.Bad, message)
	case unknown:
		return Unknown(as.Type, as.Unknown, message)
	}
	return True(as.Type, as.Good, "")
}

func good(status metav1.ConditionStatus, negative bool) bool {
	if negative {
		return status == metav1.ConditionFalse
	}
	return status == metav1.ConditionTrue
}

func line(part Part, condition *metav1.Condition) string {
	message := condition.Message
	if part.Override != "" {
		message = part.Override
	}
	if message == "" {
		message = condition.Reason
	}
	return "* " + part.Type + ": " + strings.ReplaceAll(message, "\n", "\n  ")
}

// Foreign returns the conditions whose type is not in own, for comparing what others wrote.
func Foreign(list []metav1.Condition, own ...string) []metav1.Condition {
	var foreign []metav1.Condition
	for _, condition := range list {
		if !slices.Contains(own, condition.Type) {
			foreign = append(foreign, condition)
		}
	}
	return foreign
}

// ListNames lists the first names for a message and counts the others, as in "a, b and 3 more".
func ListNames(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
