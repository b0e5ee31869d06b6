// The scenario of the bench `hops` in ns-3, for scripts/bench-peers: M clients submit 1460-byte segments with exponential
// gaps of 10 ms on average over Reno, at 10 Mbit/s and 25 ms each, through a gateway of 50 Mbit/s, 25 ms and 50 packets.
// Prints packet-hops (packets completely received at the far end of a link) and CPU seconds. The window is ns-3's own,
// not 20 packets: with a receive buffer that small Debian's ns-3.37 ends with a segmentation fault.
#include <ctime>
#include <iostream>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{
constexpr uint32_t SEGMENT = 1460;
constexpr uint16_t PORT = 80;

uint64_t hops = 0;

void
Received(Ptr<const Packet>)
{
    ++hops;
}

double
CpuSeconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

/// Submits a segment at every arrival of a Poisson process; segments wait while the socket buffer is full.
struct Source
{
    Ptr<Socket> socket;
    Ptr<ExponentialRandomVariable> gap;
    uint64_t waiting = 0;
    bool connected = false;

    void Connected(Ptr<Socket>)
    {
        connected = true;
        Write(socket, 0);
    }

    void Arrive()
    {
        ++waiting;
        Write(socket, 0);
        Simulator::Schedule(Seconds(gap->GetValue()), &Source::Arrive, this);
    }

    void Write(Ptr<Socket>, uint32_t)
    {
        while (connected && waiting > 0 && socket->GetTxAvailable() >= SEGMENT &&
               socket->Send(Create<Packet>(SEGMENT)) > 0)
        {
            --waiting;
        }
    }
};

void
Read(Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        if (packet->GetSize() == 0)
        {
            return;
        }
    }
}

void
Accepted(Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeCallback(&Read));
}

/// A link whose devices have no queueing discipline; counts their receptions.
NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, const std::string& rate, const std::string& queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue("25ms"));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(queue));
    NetDeviceContainer devices = link.Install(a, b);
    for (uint32_t i = 0; i < devices.GetN(); ++i)
    {
        devices.Get(i)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Received));
    }
    return devices;
}
} // namespace

int
main(int argc, char* argv[])
{
    const uint32_t clients = argc > 1 ? std::stoul(argv[1]) : 60;
    const double seconds = argc > 2 ? std::stod(argv[2]) : 20;

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpLinuxReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(64 * SEGMENT));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::TcpNoDelay", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));

    NodeContainer ends;
    ends.Create(2);
    NodeContainer nodes;
    nodes.Create(clients);
    InternetStackHelper stack;
    stack.Install(ends);
    stack.Install(nodes);
    TrafficControlHelper control;

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    NetDeviceContainer trunk = Connect(ends.Get(0), ends.Get(1), "50Mbps", "50p");
    const Ipv4InterfaceContainer interfaces = addresses.Assign(trunk);
    control.Uninstall(trunk);
    for (uint32_t i = 0; i < clients; ++i)
    {
        addresses.NewNetwork();
        NetDeviceContainer access = Connect(nodes.Get(i), ends.Get(0), "10Mbps", "1000000p");
        addresses.Assign(access);
        control.Uninstall(access);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Ptr<Socket> listener = Socket::CreateSocket(ends.Get(1), TcpSocketFactory::GetTypeId());
    listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                MakeCallback(&Accepted));
    listener->Listen();

    std::vector<Source> sources(clients);
    const InetSocketAddress server(interfaces.GetAddress(1), PORT);
    for (uint32_t i = 0; i < clients; ++i)
    {
        Source& source = sources[i];
        source.socket = Socket::CreateSocket(nodes.Get(i), TcpSocketFactory::GetTypeId());
        source.socket->Bind();
        Simulator::ScheduleWithContext(nodes.Get(i)->GetId(), Seconds(0), [&source, server] {
            source.socket->Connect(server);
        });
        source.socket->SetConnectCallback(MakeCallback(&Source::Connected, &source),
                                          MakeNullCallback<void, Ptr<Socket>>());
        source.socket->SetSendCallback(MakeCallback(&Source::Write, &source));
        source.gap = CreateObject<ExponentialRandomVariable>();
        source.gap->SetAttribute("Mean", DoubleValue(0.01));
        source.gap->SetStream(i);
        Simulator::Schedule(Seconds(source.gap->GetValue()), &Source::Arrive, &source);
    }

    const double setUp = CpuSeconds();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const double all = CpuSeconds();
    std::cout << "clients " << clients << "  seconds " << seconds << "  hops " << hops << "  process "
              << all << " s  cpu " << all - setUp << " s\n";
    Simulator::Destroy();
    return 0;
}
