// Command tables writes the tables of rules into the pages of the contracts. Run it in the root of the repository.
package main

import (
	"fmt"
	"os"

	"millwright.dev/contracts/rules/tables"
)

func main() {
	if err := tables.Update("contracts"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
