package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// saramaMember is also the handler of its group. It cannot seek within a session, because a claim's
// offset is fixed at its start.
type saramaMember struct {
	positions
	given   settings
	client  sarama.Client
	group   sarama.ConsumerGroup
	session sarama.ConsumerGroupSession
	cancel  context.CancelFunc
	ended   chan struct{}
}

var saramaStrategies = map[string]func() sarama.BalanceStrategy{
	"range":       sarama.NewBalanceStrategyRange,
	"round-robin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":      sarama.NewBalanceStrategySticky,
}

func startSarama(given settings) (member, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = time.Duration(given.SessionMs) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{saramaStrategies[given.Strategy]()}
	if given.Instance != nil {
		config.Consumer.Group.InstanceId = *given.Instance
	}
	client, err := sarama.NewClient([]string{given.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	group, err := sarama.NewConsumerGroupFromClient(given.Group, client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &saramaMember{given: given, client: client, group: group, cancel: cancel, ended: make(chan struct{})}
	one.next = map[int32]int64{}
	go one.consume(ctx)
	return one, nil
}

func (s *saramaMember) consume(ctx context.Context) {
	defer close(s.ended)
	for ctx.Err() == nil {
		err := s.group.Consume(ctx, []string{s.given.Topic}, s)
		if err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
			check(err)
		}
	}
}

func (s *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	s.Lock()
	s.session = session
	s.next = map[int32]int64{}
	s.Unlock()
	own("assigned", session.Claims()[s.given.Topic], session.GenerationID())
	return nil
}

func (s *saramaMember) Cleanup(session sarama.ConsumerGroupSession) error {
	own("revoked", nil, session.GenerationID())
	return nil
}

func (s *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case one, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			s.set(one.Partition, one.Offset+1)
			record(one.Partition, one.Offset, one.Value)
		case <-session.Context().Done():
			return nil
		}
	}
}

func (s *saramaMember) commit() error {
	s.Lock()
	session := s.session
	s.Unlock()
	for partition, offset := range s.all() {
		session.MarkOffset(s.given.Topic, partition, offset, "")
	}
	session.Commit()
	return nil
}

func (s *saramaMember) seek(int32, int64) error { return errors.New("not offered") }

func (s *saramaMember) pause(partition int32) {
	s.group.Pause(map[string][]int32{s.given.Topic: {partition}})
}

func (s *saramaMember) resume(partition int32) {
	s.group.Resume(map[string][]int32{s.given.Topic: {partition}})
}

func (s *saramaMember) lag() (map[int32]int64, error) {
	admin, err := sarama.NewClusterAdminFromClient(s.client)
	if err != nil {
		return nil, err
	}
	partitions := s.session.Claims()[s.given.Topic]
	answer, err := admin.ListConsumerGroupOffsets(s.given.Group, map[string][]int32{s.given.Topic: partitions})
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for _, partition := range partitions {
		end, err := s.client.GetOffset(s.given.Topic, partition, sarama.OffsetNewest)
		if err != nil {
			return nil, err
		}
		found[partition] = end - max(answer.GetBlock(s.given.Topic, partition).Offset, 0)
	}
	return found, nil
}

func (s *saramaMember) close() error {
	s.cancel()
	<-s.ended
	return s.group.Close()
}
