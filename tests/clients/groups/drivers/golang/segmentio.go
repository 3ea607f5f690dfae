package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// segmentio is kafka-go's ConsumerGroup with a Reader for each partition: its Reader with a GroupID hides assignments and cannot seek.
type segmentio struct {
	positions
	given      settings
	group      *kafka.ConsumerGroup
	generation *kafka.Generation
	readers    map[int32]*kafka.Reader
}

var segmentioBalancers = map[string]kafka.GroupBalancer{
	"range":       kafka.RangeGroupBalancer{},
	"round-robin": kafka.RoundRobinGroupBalancer{},
}

func startSegmentio(given settings) (member, error) {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                given.Group,
		Brokers:           []string{given.Bootstrap},
		Topics:            []string{given.Topic},
		GroupBalancers:    []kafka.GroupBalancer{segmentioBalancers[given.Strategy]},
		SessionTimeout:    time.Duration(given.SessionMs) * time.Millisecond,
		HeartbeatInterval: 500 * time.Millisecond,
		JoinGroupBackoff:  200 * time.Millisecond,
		StartOffset:       kafka.FirstOffset,
	})
	if err != nil {
		return nil, err
	}
	one := &segmentio{given: given, group: group}
	go one.run()
	return one, nil
}

func (s *segmentio) run() {
	for {
		generation, err := s.group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err == nil {
			s.begin(generation)
		}
	}
}

// begin reads each partition until the generation ends. Next returns another generation only after
// all reads have ended.
func (s *segmentio) begin(generation *kafka.Generation) {
	assigned := generation.Assignments[s.given.Topic]
	readers, partitions := map[int32]*kafka.Reader{}, []int32{}
	var reading sync.WaitGroup
	for _, one := range assigned {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{s.given.Bootstrap}, Topic: s.given.Topic, Partition: one.ID,
			MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 200 * time.Millisecond,
		})
		check(reader.SetOffset(one.Offset))
		readers[int32(one.ID)] = reader
		partitions = append(partitions, int32(one.ID))
	}
	s.Lock()
	s.generation, s.readers, s.next = generation, readers, map[int32]int64{}
	s.Unlock()
	own("assigned", partitions, generation.ID)
	for _, reader := range readers {
		reading.Add(1)
		generation.Start(func(ctx context.Context) {
			defer reading.Done()
			s.read(ctx, reader)
		})
	}
	generation.Start(func(ctx context.Context) {
		<-ctx.Done()
		reading.Wait()
		own("revoked", nil, generation.ID)
	})
}

func (s *segmentio) read(ctx context.Context, reader *kafka.Reader) {
	defer reader.Close()
	for {
		one, err := reader.ReadMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		check(err)
		s.set(int32(one.Partition), one.Offset+1)
		record(int32(one.Partition), one.Offset, one.Value)
	}
}

func (s *segmentio) commit() error {
	offsets := map[int]int64{}
	for partition, offset := range s.all() {
		offsets[int(partition)] = offset
	}
	return s.generation.CommitOffsets(map[string]map[int]int64{s.given.Topic: offsets})
}

func (s *segmentio) seek(partition int32, offset int64) error {
	return s.readers[partition].SetOffset(offset)
}

func (s *segmentio) pause(int32)  { check(errors.New("not offered")) }
func (s *segmentio) resume(int32) { check(errors.New("not offered")) }

func (s *segmentio) lag() (map[int32]int64, error) {
	client := &kafka.Client{Addr: kafka.TCP(s.given.Bootstrap)}
	partitions, ends := []int{}, []kafka.OffsetRequest{}
	for partition := range s.readers {
		partitions = append(partitions, int(partition))
		ends = append(ends, kafka.LastOffsetOf(int(partition)))
	}
	committed, err := client.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{
		GroupID: s.given.Group, Topics: map[string][]int{s.given.Topic: partitions},
	})
	if err != nil {
		return nil, err
	}
	listed, err := client.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{s.given.Topic: ends},
	})
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for _, one := range listed.Topics[s.given.Topic] {
		found[int32(one.Partition)] = one.LastOffset
	}
	for _, one := range committed.Topics[s.given.Topic] {
		found[int32(one.Partition)] -= max(one.CommittedOffset, 0)
	}
	return found, nil
}

func (s *segmentio) close() error {
	return s.group.Close()
}
