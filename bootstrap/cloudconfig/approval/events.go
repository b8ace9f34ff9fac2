package approval

// approvedEvent means that a CertificateSigningRequest of the Machine was approved. One that was not has a reason of conditions,
// CertificateRequestRefused.
const approvedEvent = "CertificateRequestApproved"
