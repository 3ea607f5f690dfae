// Go clients as members of a group; commands and events are those of drivers/loop.py.
// Usage: golang sarama|kafka-go|franz-go SETTINGS
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
)

type settings struct {
	Bootstrap, Group, Topic, Strategy string
	Instance                          *string
	SessionMs                         int `json:"session_ms"`
}

// member has the operations of a client; each call returns when the broker has responded.
type member interface {
	commit() error
	seek(partition int32, offset int64) error
	pause(partition int32)
	resume(partition int32)
	lag() (map[int32]int64, error)
	close() error
}

type event map[string]any

var output sync.Mutex

func tell(kind string, fields event) {
	if fields == nil {
		fields = event{}
	}
	fields["event"] = kind
	line, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		tell("error", event{"text": err.Error()})
		os.Exit(1)
	}
}

// own reports all partitions that the member owns from now on; generation is nil if it is hidden.
func own(kind string, partitions []int32, generation any) {
	sorted := append([]int32{}, partitions...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	tell(kind, event{"partitions": sorted, "generation": generation})
}

func record(partition int32, offset int64, value []byte) {
	tell("record", event{"partition": partition, "offset": offset, "value": string(value)})
}

// positions are the offsets to commit of owned partitions. They are set before the record is
// reported, because a commit may follow at once.
type positions struct {
	sync.Mutex
	next map[int32]int64
}

func (p *positions) set(partition int32, offset int64) {
	p.Lock()
	defer p.Unlock()
	p.next[partition] = offset
}

func (p *positions) forget(partitions ...int32) {
	p.Lock()
	defer p.Unlock()
	for _, partition := range partitions {
		delete(p.next, partition)
	}
}

func (p *positions) all() map[int32]int64 {
	p.Lock()
	defer p.Unlock()
	copied := map[int32]int64{}
	for partition, offset := range p.next {
		copied[partition] = offset
	}
	return copied
}

func obey(one member, line []byte) {
	var command struct {
		Do        string
		Partition int32
		Offset    int64
	}
	check(json.Unmarshal(line, &command))
	switch command.Do {
	case "commit":
		check(one.commit())
		tell("committed", nil)
	case "seek":
		check(one.seek(command.Partition, command.Offset))
		tell("sought", nil)
	case "pause":
		one.pause(command.Partition)
		tell("paused", nil)
	case "resume":
		one.resume(command.Partition)
		tell("resumed", nil)
	case "lag":
		found, err := one.lag()
		check(err)
		tell("lag", event{"lag": found})
	case "close":
		check(one.close())
		tell("closed", nil)
		os.Exit(0)
	}
}

func main() {
	var given settings
	check(json.Unmarshal([]byte(os.Args[2]), &given))
	start := map[string]func(settings) (member, error){
		"sarama": startSarama, "kafka-go": startSegmentio, "franz-go": startFranz,
	}
	one, err := start[os.Args[1]](given)
	check(err)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		obey(one, lines.Bytes())
	}
	check(one.close())
}
