package interruption

// refusedEvent means that the API server refuses a notice.
const refusedEvent = "NoticeRefused"
