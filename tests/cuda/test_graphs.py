"""Programs replayed as graphs: same results, other buffers, from several threads."""


def test_the_second_call_replays(on_fake):
    on_fake("""
        program = chain_program(rt.CudaProgram)
        x = gpu(np.arange(8))
        for k in range(5):
            out, half = program([x])
            assert np.array_equal(out, np.arange(8) * 8)
            assert np.array_equal(half, np.r_[np.arange(4) * 8, np.zeros(4)])
            assert program.stats["replays"] == k == fake.fake_graph_launches
        assert program.stats["launches"] == 3 and program.stats["graphs_built"] >= 1
        for single in (add_program(rt.CudaProgram), chain_program(rt.CudaProgram, graphs=False)):
            for _ in range(4):
                single([x] * (1 + (single.stats["arena_bytes"] == 0)))
            assert single.stats["replays"] == 0
        """)


def test_replays_with_other_buffers(on_fake):
    on_fake("""
        program = chain_program(rt.CudaProgram, length=6)
        kept = []
        for k in range(40):  # all outputs stay alive: every call has addresses of its own
            x = gpu(np.arange(8) + k)
            kept.append((k, x, *program([x])))
        for k, x, out, half in kept:
            assert np.array_equal(out, (np.arange(8) + k) * 64)
            assert np.array_equal(half, np.r_[(np.arange(4) + k) * 64, np.zeros(4)])
        stats = program.stats
        assert (stats["replays"], stats["graphs_built"], stats["graphs_changed"]) == (39, 1, 38)
        assert fake.fake_node_updates <= 38 * 4, "only what has another address"
        """)


def test_kernels_that_wait_themselves_are_launched_early(on_fake):
    on_fake("""
        x = gpu(np.arange(8))
        for waits, edges in ((True, 3), (False, 0)):  # then come a fill and a copy
            program = chain_program(rt.CudaProgram, length=4, waits=waits)
            fake.fake_early_launches = 0
            for _ in range(3):
                assert np.array_equal(program([x])[0], np.arange(8) * 16)
            assert fake.fake_early_launches == edges and program.stats["graphs_built"] == 1
        """)


def test_addresses_that_come_again_have_their_graph(on_fake):
    on_fake("""
        program = chain_program(rt.CudaProgram)
        xs = [gpu(np.arange(8) + k) for k in range(2)]
        def loop():
            for k in range(40):
                out, half = program([xs[k % 2]])
                assert np.array_equal(out, (np.arange(8) + k % 2) * 8)
                del out, half  # their memory is the next ones', in the other order
        loop()
        before = fake.fake_node_updates
        loop()
        assert fake.fake_node_updates == before and 2 <= program.stats["graphs_built"] <= 4
        """)


def test_short_programs_are_launched_where_that_is_cheaper(on_fake):
    on_fake("""
        program = rt.CudaProgram([kernel("scale")],
            [("launch", 0, (1, 1, 1), (("input", 0, 0), ("output", i, 0), 2.0, 8)) for i in (0, 1)],
            [("float32", (8,))], [("float32", (8,))] * 2, [], 0)
        kept = []
        for k in range(20):
            kept.append(program([gpu(np.arange(8) + k)]))
        for k, outs in enumerate(kept):
            assert all(np.array_equal(o, (np.arange(8) + k) * 2) for o in outs)
        assert program.stats["launches"] == 2 * 19 and program.stats["replays"] == 1
        """)


def test_a_graph_that_cannot_be_changed_is_made_anew(on_fake):
    on_fake("""
        program = chain_program(rt.CudaProgram, length=6)
        kept = []
        for k in range(20):
            fake.fake_fail_updates = k % 3 == 2
            x = gpu(np.arange(8) + k)
            kept.append((k, program([x])[0]))
        assert all(np.array_equal(out, (np.arange(8) + k) * 64) for k, out in kept)
        assert program.stats["graphs_built"] > 1
        """)


def test_replays_from_threads(on_fake):
    on_fake("""
        program = chain_program(rt.CudaProgram, length=4)
        def work(k):
            for i in range(100):
                x = gpu(np.arange(8) + k * 100 + i)
                out, half = program([x])
                if not np.array_equal(out, (np.arange(8) + k * 100 + i) * 16):
                    wrong.append((k, i))
        wrong = []
        threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not wrong and program.stats["replays"] > 400
        del program
        gc.collect()
        """)


def test_a_training_loop_in_place(on_fake):
    on_fake("""
        step = rt.CudaProgram([kernel("increment"), kernel("add")],
            [("launch", 0, (1, 1, 1), (("output", 0, 0), 8)),
             ("launch", 1, (1, 1, 1), (("output", 0, 0), ("input", 1, 0), ("output", 1, 0), 8))],
            [("float32", (8,))] * 2, [("float32", (8,), 0), ("float32", (8,))], [], 0, donated=[0])
        state = gpu(np.zeros(8))
        for k in range(100):
            state, loss = step([state, gpu(np.full(8, k))])
            if k % 10 == 0:
                assert (np.asarray(loss) == 2 * k + 1).all()
        assert (np.asarray(state) == 100).all() and step.stats["replays"] > 50
        del state, loss
        rt.cuda_synchronize(0)
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
        """)
