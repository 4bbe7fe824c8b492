"""PyTorch Geometric without its compiled extensions: layers, loaders and training on graphs."""

import pytest
import torch
from weights import fill, integers, normal

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
import torch_geometric as pyg
import torch_geometric.transforms as T
from torch_geometric import nn as gnn
from torch_geometric import utils
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader


def graph(name="graph", nodes=12, edges=40):
    edge_index = torch.stack([integers(name + " from", 0, nodes, edges), integers(name + " to", 0, nodes, edges)])
    return Data(
        x=normal(name, nodes, 8),
        edge_index=edge_index,
        edge_attr=normal(name + " attr", edges, 4),
        y=integers(name + " y", 0, 3, nodes),
    )


LAYERS = {
    "GATConv": lambda: gnn.GATConv(8, 4, heads=2, edge_dim=4),
    "GATv2Conv": lambda: gnn.GATv2Conv(8, 4, heads=2, edge_dim=4),
    "GCNConv": lambda: gnn.GCNConv(8, 6),
    "GINConv": lambda: gnn.GINConv(torch.nn.Linear(8, 6)),
    "GINEConv": lambda: gnn.GINEConv(torch.nn.Linear(8, 6), edge_dim=4),
    "GraphConv": lambda: gnn.GraphConv(8, 6, aggr="max"),
    "ChebConv": lambda: gnn.ChebConv(8, 6, K=3),
    "PNAConv": lambda: gnn.PNAConv(
        8, 6, ["mean", "min", "max", "std"], ["identity", "amplification"], torch.tensor([0, 1, 3, 5, 3])
    ),
    "SAGEConv": lambda: gnn.SAGEConv(8, 6, aggr="mean"),
    "SGConv": lambda: gnn.SGConv(8, 6, K=2),
    "TransformerConv": lambda: gnn.TransformerConv(8, 4, heads=2, edge_dim=4),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(figures, name):
    data, layer = graph(), fill(LAYERS[name]())
    x = data.x.clone().requires_grad_()
    takes_edges = name in ("GATConv", "GATv2Conv", "GINEConv", "TransformerConv")
    result = layer(x, data.edge_index, edge_attr=data.edge_attr) if takes_edges else layer(x, data.edge_index)
    result.square().mean().backward()
    figures.check("result", result)
    figures.check("gradient", x.grad)


def test_nodes_are_classified(figures):
    model = fill(gnn.GCN(8, 16, num_layers=2, out_channels=3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    data, losses = graph(), []
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data.x, data.edge_index), data.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    figures.check("losses", losses)


def test_batches_of_graphs(figures):
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = gnn.GraphConv(8, 16), gnn.GraphConv(16, 16)
            self.norm, self.out = gnn.BatchNorm(16), torch.nn.Linear(16, 2)

        def forward(self, data):
            x = self.norm(self.first(data.x, data.edge_index).relu())
            x = self.second(x, data.edge_index).relu()
            return self.out(gnn.global_mean_pool(x, data.batch))

    graphs = [graph(f"g{i}", 5 + i, 12 + i) for i in range(8)]
    for i, g in enumerate(graphs):
        g.y = torch.tensor([i % 2])
    model = fill(Network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for batch in DataLoader(graphs, batch_size=4, shuffle=True):
        assert isinstance(batch, Batch)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    figures.check("losses", losses)
    assert batch.num_graphs == 4
    figures.check("second graph", batch[1].edge_index)


def test_kinds_of_nodes(figures):
    data = HeteroData()
    data["user"].x, data["item"].x = normal("users", 6, 4), normal("items", 5, 3)
    data["user", "buys", "item"].edge_index = torch.stack([integers("u", 0, 6, 14), integers("i", 0, 5, 14)])
    data = T.ToUndirected()(data)
    layer = gnn.HeteroConv({kind: gnn.SAGEConv((-1, -1), 8) for kind in data.edge_types})
    layer(data.x_dict, data.edge_index_dict)
    figures.check("result", fill(layer)(data.x_dict, data.edge_index_dict))


def test_utilities(figures):
    data = graph()
    figures.check("degree", utils.degree(data.edge_index[1], 12))
    figures.check("dense", utils.to_dense_adj(data.edge_index))
    figures.check("softmax", utils.softmax(data.edge_attr, data.edge_index[1], num_nodes=12))
    figures.check(
        "scatter", [utils.scatter(data.edge_attr, data.edge_index[1], 0, 12, reduce=r) for r in ("sum", "mean", "max", "mul")]
    )
    figures.check("loops", utils.add_self_loops(*utils.remove_self_loops(data.edge_index))[0])
    figures.check("coalesced", utils.coalesce(data.edge_index))
    figures.check("laplacian", utils.get_laplacian(data.edge_index, normalization="sym", num_nodes=12)[1])
    figures.check("subgraph", utils.subgraph([1, 2, 3, 4, 5], data.edge_index, relabel_nodes=True)[0])
    points = T.Compose([T.NormalizeScale(), T.Distance()])(Data(pos=normal("pos", 10, 3), edge_index=data.edge_index % 10))
    figures.check("points", points.edge_attr)
    torch.manual_seed(1)
    split = T.RandomLinkSplit(num_val=0.2, num_test=0.2)(data)
    figures.check("split", [part.edge_label_index for part in split])
    figures.check("dropped", utils.dropout_edge(data.edge_index, p=0.3)[0])


def test_pooling_and_readout(figures):
    data, batch = graph(), torch.tensor([0] * 5 + [1] * 7)
    figures.check("set2set", fill(gnn.Set2Set(8, 2))(data.x, batch))
    figures.check(
        "sort",
        gnn.global_sort_pool(data.x, batch, 3) if hasattr(gnn, "global_sort_pool") else gnn.SortAggregation(3)(data.x, batch),
    )
    pooled = fill(gnn.TopKPooling(8, ratio=0.5))(data.x, data.edge_index, batch=batch)
    figures.check("topk", [pooled[0], pooled[1], pooled[3]])
    figures.check("attention", fill(gnn.AttentionalAggregation(torch.nn.Linear(8, 1)))(data.x, batch))


def test_profile_of_a_model():
    from torch_geometric.profile import count_parameters

    assert count_parameters(gnn.GCN(8, 16, num_layers=2, out_channels=3)) == 8 * 16 + 16 + 16 * 3 + 3
    assert "GCNConv" in pyg.nn.summary(gnn.GCN(8, 16, num_layers=2, out_channels=3), graph().x, graph().edge_index)
