package store_test

import (
	"bufio"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

// interfaceOf reads the library's interface text: the members of each type, "name: type" in their
// order, or the words of an enumeration.
func interfaceOf(t *testing.T) (types map[string][]string, methods map[string][2][]string, errors []string) {
	types, methods = map[string][]string{}, map[string][2][]string{}
	text := regexp.MustCompile(`#[^\n]*`).ReplaceAllString(store.Interface(), "")
	members := func(list string) (each []string) {
		for _, one := range strings.Split(list, ",") {
			if one = strings.TrimSpace(one); one != "" {
				each = append(each, one)
			}
		}
		return each
	}
	declared := regexp.MustCompile(`(?s)\b(type|method|error) (\w+)\s*\(([^()]*)\)(?:\s*->\s*\(([^()]*)\))?`)
	for _, d := range declared.FindAllStringSubmatch(text, -1) {
		switch d[1] {
		case "type":
			types[d[2]] = members(d[3])
		case "method":
			methods[d[2]] = [2][]string{members(d[3]), members(d[4])}
		default:
			errors = append(errors, d[2])
		}
	}
	if len(types) < 40 || len(methods) < 40 || len(errors) != 19 {
		t.Fatalf("%d types, %d methods, %d errors", len(types), len(methods), len(errors))
	}
	return types, methods, errors
}

// asInText says how the text has a Go type, and notes the named types that it is made of.
func asInText(of reflect.Type, optional bool, named map[string]reflect.Type) string {
	mark := ""
	if optional {
		mark = "?"
	}
	switch {
	case of == reflect.TypeFor[time.Time]():
		return mark + "string"
	case of.Kind() == reflect.Pointer:
		return mark + asInText(of.Elem(), false, named)
	case of.Kind() == reflect.Slice:
		return mark + "[]" + asInText(of.Elem(), false, named)
	case of.Kind() == reflect.Map:
		return mark + "[string]" + asInText(of.Elem(), false, named)
	case of.PkgPath() != "":
		named[of.Name()] = of
		return mark + of.Name()
	}
	return mark + map[reflect.Kind]string{reflect.Int64: "int", reflect.Bool: "bool", reflect.String: "string"}[of.Kind()]
}

func membersOf(of reflect.Type, named map[string]reflect.Type) (members []string) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, optional := strings.Cut(field.Tag.Get("json"), ",")
		if optional && options != "omitempty" && options != "omitzero" {
			name += " " + options
		}
		members = append(members, name+": "+asInText(field.Type, optional, named))
	}
	return members
}

// Each call and each type that Go shows has the text's members, in their order.
func TestTheTypesAreThoseOfTheInterface(t *testing.T) {
	types, methods, _ := interfaceOf(t)
	named := map[string]reflect.Type{}
	compare := func(what string, got, want []string) {
		t.Helper()
		for i := range want { // words that Go has no constants for
			of := strings.TrimLeft(want[i][strings.Index(want[i], ": ")+2:], "?")
			if i < len(got) && strings.HasSuffix(got[i], "string") && len(types[of]) > 0 && !strings.Contains(types[of][0], ":") {
				want[i] = strings.TrimSuffix(want[i], of) + "string"
			}
		}
		errorIf(t, !slices.Equal(got, want), "%s:\n%q, not\n%q", what, got, want)
	}
	calls := reflect.TypeFor[waybill.Calls]()
	for i := range calls.NumMethod() {
		call := calls.Method(i)
		want, there := methods[call.Name]
		errorIf(t, !there, "%s is no call", call.Name)
		delete(methods, call.Name)
		var got [2][]string
		if call.Type.NumIn() == 3 { // receiver, context, parameters
			errorIf(t, call.Type.In(2).Name() != call.Name, "%s takes %v", call.Name, call.Type.In(2))
			got[0] = membersOf(call.Type.In(2), named)
		}
		if call.Type.NumOut() == 2 {
			got[1] = membersOf(call.Type.Out(0), named)
		}
		compare(call.Name+"'s parameters", got[0], want[0])
		compare(call.Name+"'s answer", got[1], want[1])
	}
	errorIf(t, len(methods) > 0, "Go lacks %v", methods)
	for compared := map[string]bool{}; len(compared) < len(named); {
		for name, of := range named {
			if compared[name] {
				continue
			}
			compared[name] = true
			if of.Kind() == reflect.Struct {
				compare(name, membersOf(of, named), types[name])
			}
		}
	}
}

// The constants are the text's words, and the errors its errors.
func TestTheWordsAreThoseOfTheInterface(t *testing.T) {
	types, _, errors := interfaceOf(t)
	words, all := map[string][]string{}, []string{}
	text := func(n ast.Expr) string {
		word, err := strconv.Unquote(n.(*ast.BasicLit).Value)
		must(t, err)
		return word
	}
	for _, path := range []string{"../types.go", "../errors.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "string" {
					words[n.Name.Name] = append([]string{}, words[n.Name.Name]...)
				}
			case *ast.ValueSpec:
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name != "error" {
					words[kind.Name] = append(words[kind.Name], text(n.Values[0]))
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Name" {
					all = append(all, text(n.Value))
				}
			}
			return true
		})
	}
	errorIf(t, len(words) < 16, "only the words of %v", words)
	for name, got := range words {
		errorIf(t, !slices.Equal(got, types[name]), "%s: %q, not %q", name, got, types[name])
	}
	slices.Sort(all)
	slices.Sort(errors)
	errorIf(t, !slices.Equal(all, errors), "the errors are %q, not %q", all, errors)
}

// What the text says of a call tells what became of it if its answer is lost.
func TestTheReadsAreThoseOfTheInterface(t *testing.T) {
	directory := scratch(t)
	listener, err := net.Listen("unix", filepath.Join(directory, "owner.sock"))
	must(t, err)
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(c).ReadString(0)
			c.Close()
		}
	}()
	methods := regexp.MustCompile(`(?m)^# ([RWL])\b([^\n]*)\n(?:#[^\n]*\n)*method (\w+)`).FindAllStringSubmatch(store.Interface(), -1)
	errorIf(t, len(methods) < 40, "%d methods", len(methods))
	for _, m := range methods {
		want := waybill.ErrOutcomeUnknown
		if m[1] == "R" && !strings.Contains(m[2], "not through the socket") || m[3] == "BeginList" {
			want = waybill.ErrUnavailable
		}
		_, err := waybill.NewOwner(directory).Door(t.Context(), m[3], []byte("{}"))
		errorIf(t, !errors.Is(err, want), "%s: %v", m[3], err)
	}
}

// The library takes each call by the name that Go sends.
func TestTheLibraryKnowsEachCall(t *testing.T) {
	streams, err := store.OpenStreams(store.StreamsOptions{Directory: filepath.Join(scratch(t), "streams"), LossMarker: store.NoLossMarker})
	must(t, err)
	defer streams.Close()
	doors := []waybill.Calls{newStore(t).Calls, store.Library, streams.Calls}
	_, methods, _ := interfaceOf(t)
	for name := range methods {
		known := 0
		for _, calls := range doors {
			err := second(calls.Door(t.Context(), name, []byte(`{"no such member": 1}`)))
			if wantError(t, err, waybill.ErrInvalidArgument); strings.Contains(err.Error(), "does not know it") {
				known++
			}
		}
		errorIf(t, known == 0, "nobody knows %s", name)
	}
	wantError(t, second(store.Library.Door(t.Context(), "NoSuchCall", []byte("{}"))), waybill.ErrInvalidArgument)
}
