// Package sqs simulates one standard queue of Amazon SQS, in the AWS JSON 1.0 protocol: ReceiveMessage with long polls and visibility
// timeouts, and DeleteMessageBatch. See https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html.
package sqs

import (
	"crypto/md5" // It is what SQS answers with.
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const targetPrefix = "AmazonSQS."

// Queue is one queue, and an http.Handler. The zero value is an empty queue.
type Queue struct {
	mu       sync.Mutex
	messages []*message
	sent     int
	arrived  chan struct{}
	failure  *Failure
	hang     chan struct{}
	calls    map[string]int
}

type message struct {
	id, receipt, body string
	sentAt            time.Time
	hiddenUntil       time.Time
	receipts          int
}

// Failure is an error of the API.
type Failure struct {
	Status  int
	Code    string
	Message string
}

// Send puts a message into the queue that was sent at that time, and returns its ID.
func (q *Queue) Send(body string, at time.Time) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent++
	m := &message{id: fmt.Sprintf("message-%d", q.sent), body: body, sentAt: at}
	q.messages = append(q.messages, m)
	if q.arrived != nil {
		close(q.arrived)
		q.arrived = nil
	}
	return m.id
}

// Fail has all calls fail from now on; nil ends that.
func (q *Queue) Fail(f *Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failure = f
}

// Hang leaves all calls unanswered until the returned function is called.
func (q *Queue) Hang() (release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	hang := make(chan struct{})
	q.hang = hang
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.hang = nil
		close(hang)
	})
}

// Redeliver makes all messages that were received and not deleted visible again, as the end of their visibility timeout does.
func (q *Queue) Redeliver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages {
		m.hiddenUntil = time.Time{}
	}
	if q.arrived != nil {
		close(q.arrived)
		q.arrived = nil
	}
}

// Left is how many messages are not deleted.
func (q *Queue) Left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.messages)
}

// Calls is how often an action was called.
func (q *Queue) Calls(action string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls[action]
}

// ServeHTTP answers the API.
func (q *Queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
	failure, hang := q.begin(action)
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
			return
		}
	}
	if failure != nil {
		fail(w, *failure)
		return
	}
	switch action {
	case "ReceiveMessage":
		q.receive(w, r)
	case "DeleteMessageBatch":
		q.deleteBatch(w, r)
	default:
		fail(w, Failure{http.StatusBadRequest, "UnknownOperationException", "not simulated: " + action})
	}
}

func (q *Queue) begin(action string) (*Failure, chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.calls == nil {
		q.calls = map[string]int{}
	}
	q.calls[action]++
	return q.failure, q.hang
}

type receiveRequest struct {
	MaxNumberOfMessages int
	VisibilityTimeout   *int
	WaitTimeSeconds     int
}

type receivedMessage struct {
	MessageId, ReceiptHandle, Body, MD5OfBody string //nolint:revive // The API's names.
	Attributes                                map[string]string
}

func (q *Queue) receive(w http.ResponseWriter, r *http.Request) {
	in := receiveRequest{MaxNumberOfMessages: 1}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.MaxNumberOfMessages < 1 || in.MaxNumberOfMessages > 10 ||
		in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20 {
		fail(w, Failure{http.StatusBadRequest, "InvalidParameterValue", "a parameter is out of range"})
		return
	}
	timeout := time.NewTimer(time.Duration(in.WaitTimeSeconds) * time.Second)
	defer timeout.Stop()
	for {
		found, arrived := q.take(in)
		if len(found) > 0 {
			reply(w, map[string]any{"Messages": found})
			return
		}
		select {
		case <-arrived:
		case <-timeout.C:
			reply(w, map[string]any{})
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (q *Queue) take(in receiveRequest) ([]receivedMessage, chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	hidden := 30
	if in.VisibilityTimeout != nil {
		hidden = *in.VisibilityTimeout
	}
	now := time.Now()
	var found []receivedMessage
	for _, m := range q.messages {
		if len(found) == in.MaxNumberOfMessages || now.Before(m.hiddenUntil) {
			continue
		}
		m.receipts++
		m.receipt = fmt.Sprintf("%s/%d", m.id, m.receipts)
		m.hiddenUntil = now.Add(time.Duration(hidden) * time.Second)
		sum := md5.Sum([]byte(m.body)) // It is what SQS answers with.
		found = append(found, receivedMessage{
			MessageId: m.id, ReceiptHandle: m.receipt, Body: m.body, MD5OfBody: hex.EncodeToString(sum[:]),
			Attributes: map[string]string{"SentTimestamp": strconv.FormatInt(m.sentAt.UnixMilli(), 10)},
		})
	}
	if q.arrived == nil {
		q.arrived = make(chan struct{})
	}
	return found, q.arrived
}

func (q *Queue) deleteBatch(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Entries []struct{ Id, ReceiptHandle string } //nolint:revive // The API's names.
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Entries) == 0 || len(in.Entries) > 10 {
		fail(w, Failure{http.StatusBadRequest, "EmptyBatchRequest", "a batch has one to ten entries"})
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var done []map[string]string
	for _, entry := range in.Entries {
		kept := q.messages[:0]
		for _, m := range q.messages {
			if m.receipt != entry.ReceiptHandle {
				kept = append(kept, m)
			}
		}
		q.messages = kept
		done = append(done, map[string]string{"Id": entry.Id})
	}
	reply(w, map[string]any{"Successful": done, "Failed": []any{}})
}

func reply(w http.ResponseWriter, body any) { write(w, http.StatusOK, body) }

func fail(w http.ResponseWriter, f Failure) {
	write(w, f.Status, map[string]string{"__type": "com.amazonaws.sqs#" + f.Code, "message": f.Message})
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
