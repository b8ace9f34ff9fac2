package naming

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"
)

// allowed is what a template may have, for messages.
const allowed = "use .cluster.name, .machineSet.name and .random, if, and the functions and, or, not, eq, ne, lt, le, gt, ge, len, index, slice, print, printf"

// functions are those that make no more of their arguments than these are long. html, js and urlquery multiply them, time
// and again where one follows another.
var functions = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice", "print", "printf"}

// format is what printf takes: a width would make megabytes of a digit.
var format = regexp.MustCompile(`^([^%]|%[svd%])*$`)

// checkNode refuses what can repeat itself: range, templates that call templates, and with and variables, by which a text
// can be doubled time and again. What remains takes time and memory in proportion to the template's own length.
func checkNode(node parse.Node) error {
	switch n := node.(type) {
	case *parse.TextNode, *parse.CommentNode:
		return nil
	case *parse.ListNode:
		return checkList(n)
	case *parse.ActionNode:
		return checkPipe(n.Pipe)
	case *parse.IfNode:
		if err := checkPipe(n.Pipe); err != nil {
			return err
		}
		if err := checkList(n.List); err != nil {
			return err
		}
		return checkList(n.ElseList)
	}
	return refused(node)
}

// checkList is for a list that may be nil, as that of an else which is not there.
func checkList(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := checkNode(node); err != nil {
			return err
		}
	}
	return nil
}

func checkPipe(pipe *parse.PipeNode) error {
	if len(pipe.Decl) > 0 {
		return refused(pipe)
	}
	for _, command := range pipe.Cmds {
		if err := checkCommand(command); err != nil {
			return err
		}
	}
	return nil
}

func checkCommand(command *parse.CommandNode) error {
	for i, argument := range command.Args {
		switch a := argument.(type) {
		case *parse.PipeNode:
			if err := checkPipe(a); err != nil {
				return err
			}
		case *parse.ChainNode:
			if pipe, ok := a.Node.(*parse.PipeNode); ok {
				if err := checkPipe(pipe); err != nil {
					return err
				}
			}
		case *parse.IdentifierNode:
			if !slices.Contains(functions, a.Ident) {
				return refused(a)
			}
			if a.Ident == "printf" && !hasFormat(command.Args[i+1:]) {
				return fmt.Errorf("printf without a constant format of %%s, %%d and %%v is not allowed in it: %s", allowed)
			}
		}
	}
	return nil
}

// hasFormat reports whether the arguments of printf begin with a format that is allowed.
func hasFormat(arguments []parse.Node) bool {
	if len(arguments) == 0 {
		return false
	}
	text, ok := arguments[0].(*parse.StringNode)
	return ok && format.MatchString(text.Text)
}

// refused names what is not allowed by its first word.
func refused(node parse.Node) error {
	word, _, _ := strings.Cut(strings.TrimPrefix(node.String(), "{{"), " ")
	return fmt.Errorf("%s is not allowed in it: %s", strings.TrimSuffix(word, "}}"), allowed)
}
