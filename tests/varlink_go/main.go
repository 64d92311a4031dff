// SPDX-License-Identifier: BSD-2-Clause

// A client of the socket made of Debian's varlink library for Go alone: introspects,
// calls every method on the socket it belongs to, streams Monitor. Prints TAP.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/varlink/go/varlink"
	"github.com/varlink/go/varlink/idl"
)

var tests, failed int

func check(err error, format string, args ...interface{}) bool {
	tests++
	word := "ok"
	if err != nil {
		word = "not ok"
		failed++
	}
	fmt.Printf("%s %d - %s\n", word, tests, fmt.Sprintf(format, args...))
	if err != nil {
		fmt.Printf("# %s\n", strings.ReplaceAll(err.Error(), "\n", "\n# "))
	}
	return err == nil
}

type object = map[string]interface{}

// What a value must look like to be of a type of the definition.
type definition struct {
	types map[string]*idl.Type
}

func (d *definition) fits(t *idl.Type, v interface{}, where string) error {
	good := true
	switch t.Kind {
	case idl.TypeBool:
		_, good = v.(bool)
	case idl.TypeInt, idl.TypeFloat:
		_, good = v.(float64)
	case idl.TypeString:
		_, good = v.(string)
	case idl.TypeMaybe:
		if v != nil {
			return d.fits(t.ElementType, v, where)
		}
	case idl.TypeAlias:
		return d.fits(d.types[t.Alias], v, where)
	case idl.TypeEnum:
		good = false
		for _, f := range t.Fields {
			good = good || f.Name == v
		}
	case idl.TypeArray:
		list, ok := v.([]interface{})
		for i, e := range list {
			if err := d.fits(t.ElementType, e, fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return err
			}
		}
		good = ok
	case idl.TypeMap:
		m, ok := v.(object)
		for key, e := range m {
			if err := d.fits(t.ElementType, e, where+"."+key); err != nil {
				return err
			}
		}
		good = ok
	case idl.TypeStruct:
		return d.fitsStruct(t, v, where)
	}
	if !good {
		return fmt.Errorf("%s: wrong value %v", where, v)
	}
	return nil
}

func (d *definition) fitsStruct(t *idl.Type, v interface{}, where string) error {
	o, ok := v.(object)
	if !ok {
		return fmt.Errorf("%s: no object: %v", where, v)
	}
	for _, f := range t.Fields {
		value, there := o[f.Name]
		if !there {
			return fmt.Errorf("%s.%s: not there", where, f.Name)
		}
		if err := d.fits(f.Type, value, where+"."+f.Name); err != nil {
			return err
		}
	}
	if len(o) != len(t.Fields) {
		return fmt.Errorf("%s: fields that the definition does not have", where)
	}
	return nil
}

// Introspect: GetInfo, GetInterfaceDescription of each interface, parsed.
func introspect(ctx context.Context, c *varlink.Connection) *idl.IDL {
	var vendor, product, version, url string
	var interfaces []string
	var fabd *idl.IDL

	err := c.GetInfo(ctx, &vendor, &product, &version, &url, &interfaces)
	if err == nil && (product != "fabd" || version == "") {
		err = fmt.Errorf("product %q, version %q", product, version)
	}
	check(err, "GetInfo")
	sort.Strings(interfaces)
	if strings.Join(interfaces, " ") != "io.fabd org.varlink.service" {
		err = fmt.Errorf("interfaces %v", interfaces)
	}
	check(err, "interfaces")
	for _, name := range interfaces {
		text, err := c.GetInterfaceDescription(ctx, name)
		var parsed *idl.IDL
		if err == nil {
			parsed, err = idl.New(text)
		}
		if err == nil && parsed.Name != name {
			err = fmt.Errorf("it calls itself %q", parsed.Name)
		}
		check(err, "definition of %s", name)
		if name == "io.fabd" {
			fabd = parsed
		}
	}
	return fabd
}

// Call a method and compare the reply with the definition.
func call(ctx context.Context, c *varlink.Connection, d *definition, m *idl.Method,
	parameters object) {
	var reply object

	err := c.Call(ctx, "io.fabd."+m.Name, parameters, &reply)
	if err == nil {
		err = d.fits(m.Out, reply, m.Name)
	}
	check(err, "%s", m.Name)
}

// With more, a list is as long as in one reply.
func stream(ctx context.Context, c *varlink.Connection, d *definition, m *idl.Method) {
	var all object
	key := m.Out.Fields[0].Name
	n := 0

	err := c.Call(ctx, "io.fabd."+m.Name, object{}, &all)
	receive, err2 := c.Send(ctx, "io.fabd."+m.Name, object{}, varlink.More)
	if err == nil {
		err = err2
	}
	for flags := uint64(varlink.Continues); err == nil && flags&varlink.Continues != 0; {
		var reply object
		flags, err = receive(ctx, &reply)
		if err == nil {
			err = d.fits(m.Out, reply, m.Name)
		}
		list, _ := reply[key].([]interface{})
		n += len(list)
	}
	list, _ := all[key].([]interface{})
	if err == nil && n != len(list) {
		err = fmt.Errorf("%d objects streamed, %d in one reply", n, len(list))
	}
	check(err, "%s streamed, %d objects", m.Name, n)
}

func event(ctx context.Context, d *definition, m *idl.Method,
	receive func(context.Context, interface{}) (uint64, error)) (object, error) {
	var reply object

	flags, err := receive(ctx, &reply)
	if err == nil && flags&varlink.Continues == 0 {
		err = fmt.Errorf("the stream ended")
	}
	if err == nil {
		err = d.fits(m.Out, reply, m.Name)
	}
	if err != nil {
		return nil, err
	}
	return reply["event"].(object), nil
}

// Stream Monitor while something happens; come back later and miss nothing.
func monitor(ctx context.Context, address string, d *definition, m *idl.Method, poke func()) {
	c, err := varlink.NewConnection(ctx, address)
	if !check(err, "connect for Monitor") {
		return
	}
	receive, err := c.Send(ctx, "io.fabd.Monitor", object{}, varlink.More)
	var start, change object
	if err == nil {
		start, err = event(ctx, d, m, receive)
	}
	if err == nil && start["kind"] != "start" {
		err = fmt.Errorf("the first event is %v", start)
	}
	if !check(err, "Monitor starts") {
		return
	}
	poke()
	change, err = event(ctx, d, m, receive)
	check(err, "Monitor streams a change: %v %v", change["kind"], change["change"])
	c.Close()

	c, err = varlink.NewConnection(ctx, address)
	if err == nil {
		receive, err = c.Send(ctx, "io.fabd.Monitor",
			object{"since": start["seq"], "instance": start["instance"]}, varlink.More)
	}
	for i := 0; err == nil && i < 2; i++ {
		var again object
		again, err = event(ctx, d, m, receive)
		if err == nil && i == 1 && again["seq"] != change["seq"] {
			err = fmt.Errorf("seq %v instead of %v", again["seq"], change["seq"])
		}
	}
	check(err, "Monitor resumes where it was")
	if c != nil {
		c.Close()
	}
}

// Progress, then the result. A host that does not sweep says so.
func progress(ctx context.Context, c *varlink.Connection, d *definition, m *idl.Method,
	parameters object) {
	receive, err := c.Send(ctx, "io.fabd."+m.Name, parameters, varlink.More)
	n := 0
	for flags := uint64(varlink.Continues); err == nil && flags&varlink.Continues != 0; n++ {
		var reply object
		flags, err = receive(ctx, &reply)
		if err == nil {
			err = d.fits(m.Out, reply, m.Name)
		}
	}
	if errorName(err) == "io.fabd.Unavailable" {
		err = nil
	}
	check(err, "%s, %d replies", m.Name, n)
}

// Questions about the first node of the fabric; where there is none, it is missing.
func ofFabric(ctx context.Context, c *varlink.Connection, d *definition, m *idl.Method) {
	var nodes, reply object

	err := c.Call(ctx, "io.fabd.ListFabricNodes", object{}, &nodes)
	list, _ := nodes["nodes"].([]interface{})
	guid := "0x1"
	if len(list) > 0 {
		guid, _ = list[0].(object)["node_guid"].(string)
	}
	parameters := object{"port": guid + "/1"}
	if m.Name == "GetFabricRoute" {
		parameters = object{"from": guid, "to": guid}
	}
	if err == nil {
		err = c.Call(ctx, "io.fabd."+m.Name, parameters, &reply)
	}
	if err == nil {
		err = d.fits(m.Out, reply, m.Name)
	}
	if len(list) == 0 && errorName(err) == "io.fabd.Unavailable" {
		err = nil
	}
	check(err, "%s", m.Name)
}

func errorName(err error) string {
	switch e := err.(type) {
	case nil:
		return "no error"
	case *varlink.Error:
		return e.Name
	default:
		return fmt.Sprintf("%T", err)
	}
}

func expect(ctx context.Context, c *varlink.Connection, method string, parameters object,
	wanted string) {
	var reply json.RawMessage
	var err error

	got := errorName(c.Call(ctx, method, parameters, &reply))
	if got != wanted {
		err = fmt.Errorf("got %s", got)
	}
	check(err, "%s is answered with %s", method, wanted)
}

func refusals(ctx context.Context, c *varlink.Connection, connection string) {
	expect(ctx, c, "io.fabd.Nope", object{}, "*varlink.MethodNotFound")
	expect(ctx, c, "io.nope.Nope", object{}, "*varlink.InterfaceNotFound")
	expect(ctx, c, "io.fabd.GetPort", object{"prot": "x"}, "*varlink.InvalidParameter")
	expect(ctx, c, "io.fabd.GetPort", object{"port": "no-such/1"}, "io.fabd.NoSuchPort")
	expect(ctx, c, "io.fabd.GetConnection", object{"connection": "no-such/0"},
		"io.fabd.NoSuchConnection")
	expect(ctx, c, "io.fabd.Monitor", object{}, "io.fabd.ExpectedMore")
	expect(ctx, c, "io.fabd.ResetConnection", object{"connection": connection},
		"io.fabd.NotAllowed")
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: varlink_go SOCKET ADMIN_SOCKET PORT CONNECTION")
		os.Exit(2)
	}
	address, adminAddress := "unix:"+os.Args[1], "unix:"+os.Args[2]
	port, connection := os.Args[3], os.Args[4]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	c, err := varlink.NewConnection(ctx, address)
	admin, err2 := varlink.NewConnection(ctx, adminAddress)
	if !check(err, "connect") || !check(err2, "connect to the admin socket") {
		fmt.Printf("1..%d\n", tests)
		os.Exit(1)
	}
	parsed := introspect(ctx, c)
	if parsed == nil {
		fmt.Printf("1..%d\n", tests)
		os.Exit(1)
	}
	d := &definition{types: map[string]*idl.Type{}}
	for _, a := range parsed.Aliases {
		d.types[a.Name] = a.Type
	}
	peer, rail, _ := strings.Cut(connection, "/")
	rail, _, _ = strings.Cut(rail, ":")
	parameters := map[string]object{
		"GetStatus": {}, "ListDevices": {}, "ListPeers": {},
		"Check":     {},
		"Explain":   {"peer": peer, "rail": rail, "transport": nil},
		"GetFabric": {}, "ListFabricNodes": {}, "ListFabricLinks": {},
		"ListFabricErrors": {}, "GetFabricSa": {},
		"ListPorts":       {"device": nil},
		"ListConnections": {"peer": nil},
		"ListHistory":     {"since_sec": 900, "name": nil},
		"GetPort":         {"port": port},
		"GetPortCounters": {"port": port, "since_sec": 60},
		"GetConnection":   {"connection": connection},
		"GetMatrix":       {"by": "rail", "show": "loss"},
		"ResetConnection": {"connection": connection},
		"SetPortHealth":   {"port": port, "health": "auto", "for_sec": nil},
	}
	for _, m := range parsed.Methods {
		switch {
		case m.Name == "Monitor":
			monitor(ctx, address, d, m, func() {
				var reply object
				check(admin.Call(ctx, "io.fabd.ResetConnection",
					parameters["ResetConnection"], &reply), "reset during Monitor")
			})
		case m.Name == "SweepFabric":
			progress(ctx, admin, d, m, object{"cold": true})
		case m.Name == "Ping":
			progress(ctx, c, d, m, object{"peer": strings.Split(connection, "/")[0],
				"transport": []string{"udp"}, "count": 3, "interval_ms": 10.5})
		case m.Name == "GetFabricPort" || m.Name == "GetFabricRoute":
			ofFabric(ctx, c, d, m)
		case parameters[m.Name] == nil:
			check(fmt.Errorf("this program does not know it"), "%s", m.Name)
		case m.Name == "ResetConnection" || m.Name == "SetPortHealth":
			call(ctx, admin, d, m, parameters[m.Name])
		default:
			call(ctx, c, d, m, parameters[m.Name])
			call(ctx, admin, d, m, parameters[m.Name])
			if strings.HasPrefix(m.Name, "List") {
				stream(ctx, c, d, m)
			}
		}
	}
	refusals(ctx, c, connection)
	fmt.Printf("1..%d\n", tests)
	if failed > 0 {
		os.Exit(1)
	}
}
