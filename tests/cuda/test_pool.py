"""The pool of device memory: what is used again, split, merged, and given back."""

HEAD = """
        MB = 1 << 20
        def empty(size, device=0):
            return rt.cuda_empty((size,), np.uint8, device)
        def address(x):
            return rt.cuda_pointer(x)[0]
        def stats():
            return rt.cuda_memory_stats(0)
"""


def test_small_blocks_share_slabs(on_fake):
    on_fake(HEAD + """
        xs = [empty(100) for _ in range(50)]
        places = sorted(map(address, xs))
        assert len(set(places)) == 50 and all(p % 256 == 0 for p in places)
        assert min(b - a for a, b in zip(places, places[1:])) == 256
        assert fake.fake_allocations == 1 and stats()["bytes_in_use"] == 50 * 256
        last = address(xs[-1])
        del xs[-1]
        x = empty(200)
        assert address(x) == last, "the last one released comes first"
        assert address(empty(1000)) % 256 == 0 and stats()["bytes_in_use"] == 50 * 256
        del xs, x
        assert stats()["bytes_in_use"] == 0 and stats()["peak_bytes_in_use"] > 50 * 256
        assert rt.cuda_release_cached(0) == 32 * MB and fake.fake_allocated == 0
        assert stats()["bytes_reserved"] == stats()["num_segments"] == 0
        """)


def test_all_sizes_hold_what_was_asked(on_fake):
    on_fake(HEAD + """
        rng = np.random.default_rng(0)
        sizes = [*range(0, 1030, 37), *(2 ** rng.uniform(0, 24, 300)).astype(int), MB - 1, MB,
                 MB + 1]
        alive = []
        for i, n in enumerate(map(int, sizes * 3)):
            x = empty(n)
            alive.append((address(x), n, x))
            if i % 3 == 0:
                del alive[int(rng.integers(len(alive)))]
        ranges = sorted((a, n) for a, n, _ in alive if n)
        assert all(a + n <= b for (a, n), (b, _) in zip(ranges, ranges[1:])), "no overlap"
        waste = stats()["bytes_in_use"] / sum(n for _, n, _ in alive)
        assert waste < 1.15, waste
        alive.clear(); x = None
        assert stats()["bytes_in_use"] == 0
        rt.cuda_release_cached(0)
        assert fake.fake_allocated == 0 == stats()["bytes_reserved"]
        """)


def test_large_blocks_split_and_merge(on_fake):
    on_fake(HEAD + """
        a, b, c = empty(4 * MB), empty(5 * MB), empty(6 * MB)
        assert address(b) == address(a) + 4 * MB and address(c) == address(b) + 5 * MB
        assert fake.fake_allocations == 1 and stats()["largest_free_block_bytes"] == 17 * MB
        start = address(a)
        del a, b  # merged into one block of 9 MiB
        x = empty(9 * MB)
        assert address(x) == start
        del x, c
        assert stats()["largest_free_block_bytes"] == 32 * MB and stats()["bytes_in_use"] == 0
        y = empty(32 * MB)
        assert address(y) == start and fake.fake_allocations == 1
        z = empty(33 * MB)
        assert stats()["bytes_reserved"] == 66 * MB, "large ones are rounded to 2 MiB"
        assert stats()["largest_alloc_size"] == 34 * MB, "with what is left of its segment"
        """)


def test_the_best_fit_is_taken(on_fake):
    on_fake(HEAD + """
        blocks = [empty(n * MB) for n in (20, 18, 24)]
        wanted = address(blocks[1])
        del blocks
        assert address(empty(17 * MB + 1)) == wanted
        """)


def test_pressure_gives_cached_memory_back(on_fake):
    on_fake(HEAD + """
        fake.fake_limit = 100 * MB
        first = empty(60 * MB)
        kept = empty(10)
        del first
        second = empty(66 * MB)  # another segment does not fit: the cached one goes
        assert fake.fake_allocated <= 100 * MB and stats()["bytes_reserved"] == fake.fake_allocated
        del second
        smalls = [empty(700 << 10) for _ in range(80)]
        del smalls, kept
        third = empty(90 * MB)  # slabs of which nothing is used go, too
        assert stats()["bytes_in_use"] == 90 * MB
        """)


def test_out_of_memory_says_who_has_it(on_fake):
    out = on_fake(HEAD + """
        fake.fake_limit = 100 * MB
        x = empty(50 * MB)
        with raises(errors.DeviceMemoryError) as error:
            empty(80 * MB)
        assert isinstance(error.error, MemoryError)
        print(error)
        assert stats()["bytes_in_use"] == 50 * MB
        empty(40 * MB)  # what fits goes on working
        with raises(errors.DeviceMemoryError):
            ft.device_put(np.zeros(200 * MB, np.uint8), "gpu")
        big = rt.CudaProgram([], [], [], [("uint8", (1 << 40,))], [], 0)
        with raises(errors.DeviceMemoryError):
            big([])
        arena = rt.CudaProgram([], [], [], [("uint8", (8,))], [], 1 << 40)
        with raises(errors.DeviceMemoryError):
            arena([])
        del x
        assert stats()["bytes_in_use"] == 0
        """)
    assert "out of memory on gpu:0: 80.0 MiB were asked for." in out
    assert "arrays and programs use 50.0 MiB of it, at most 50.0 MiB so far" in out
    assert "the device has 50.0 MiB of 100.0 MiB free" in out and "donate_argnums" in out


def test_a_block_costs_little(on_fake):
    on_fake(HEAD + """
        xs = [empty(n) for n in (100, 1000, 5 * MB, 40 * MB)]
        for size in (100, 100_000, 3 * MB, 100 * MB):
            best = min(rt.cuda_time_pool(0, size, 20_000) for _ in range(5))
            assert best < 200, (size, best)
        """)


def test_threads_share_the_pool(on_fake):
    on_fake(HEAD + """
        def work(seed):
            rng = np.random.default_rng(seed)
            alive = []
            for n in (2 ** rng.uniform(0, 22, 2000)).astype(int):
                alive.append(empty(int(n)))
                if len(alive) > 20:
                    del alive[int(rng.integers(20))]
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert stats()["bytes_in_use"] == 0 and stats()["num_allocs"] == 8000
        rt.cuda_release_cached(0)
        assert fake.fake_allocated == 0
        """)
