// Package trim makes objects smaller before they are cached. Each object that is decoded brings copies of texts that
// it has in common with thousands of others, in lists with room to grow; here these texts are kept once. The objects
// stay equal to what they were.
package trim
