package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type franz struct {
	positions
	given  settings
	client *kgo.Client
	owned  map[int32]bool
}

var franzBalancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"round-robin":        kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func startFranz(given settings) (member, error) {
	one := &franz{given: given, owned: map[int32]bool{}}
	one.next = map[int32]int64{}
	options := []kgo.Opt{
		kgo.SeedBrokers(given.Bootstrap),
		kgo.ConsumerGroup(given.Group),
		kgo.ConsumeTopics(given.Topic),
		kgo.Balancers(franzBalancers[given.Strategy]),
		kgo.SessionTimeout(time.Duration(given.SessionMs) * time.Millisecond),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		// Callbacks wait for the poll, so no record of a revoked partition follows the report.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(one.assigned),
		kgo.OnPartitionsRevoked(one.revoked),
		kgo.OnPartitionsLost(one.revoked),
	}
	if given.Instance != nil {
		options = append(options, kgo.InstanceID(*given.Instance))
	}
	client, err := kgo.NewClient(options...)
	one.client = client
	if err == nil {
		go one.poll()
	}
	return one, err
}

func (f *franz) poll() {
	for {
		fetches := f.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachError(func(_ string, _ int32, err error) { check(err) })
		fetches.EachRecord(func(one *kgo.Record) {
			f.set(one.Partition, one.Offset+1)
			record(one.Partition, one.Offset, one.Value)
		})
		f.client.AllowRebalance()
	}
}

func (f *franz) assigned(_ context.Context, client *kgo.Client, topics map[string][]int32) {
	f.change("assigned", client, topics, true)
}

func (f *franz) revoked(_ context.Context, client *kgo.Client, topics map[string][]int32) {
	f.change("revoked", client, topics, false)
	f.forget(topics[f.given.Topic]...)
}

func (f *franz) change(kind string, client *kgo.Client, topics map[string][]int32, owns bool) {
	f.Lock()
	for _, partition := range topics[f.given.Topic] {
		if owns {
			f.owned[partition] = true
		} else {
			delete(f.owned, partition)
		}
	}
	partitions := []int32{}
	for partition := range f.owned {
		partitions = append(partitions, partition)
	}
	f.Unlock()
	_, generation := client.GroupMetadata()
	own(kind, partitions, generation)
}

func (f *franz) commit() error {
	offsets := map[int32]kgo.EpochOffset{}
	for partition, offset := range f.all() {
		offsets[partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	var failed error
	f.client.CommitOffsetsSync(context.Background(), map[string]map[int32]kgo.EpochOffset{f.given.Topic: offsets}, answered(&failed))
	return failed
}

func answered(failed *error) func(*kgo.Client, *kmsg.OffsetCommitRequest, *kmsg.OffsetCommitResponse, error) {
	return func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		*failed = err
		if err != nil {
			return
		}
		for _, topic := range answer.Topics {
			for _, partition := range topic.Partitions {
				if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
					*failed = err
				}
			}
		}
	}
}

func (f *franz) seek(partition int32, offset int64) error {
	f.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{
		f.given.Topic: {partition: {Epoch: -1, Offset: offset}},
	})
	return nil
}

func (f *franz) pause(partition int32) {
	f.client.PauseFetchPartitions(map[string][]int32{f.given.Topic: {partition}})
}

func (f *franz) resume(partition int32) {
	f.client.ResumeFetchPartitions(map[string][]int32{f.given.Topic: {partition}})
}

func (f *franz) lag() (map[int32]int64, error) {
	described, err := kadm.NewClient(f.client).Lag(context.Background(), f.given.Group)
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for partition, one := range described[f.given.Group].Lag[f.given.Topic] {
		found[partition] = one.Lag
	}
	return found, described.Error()
}

func (f *franz) close() error {
	f.client.CloseAllowingRebalance()
	return nil
}
