from sage.postings import MAX_POSITION, Pool, pack, unpack


def test_a_pool_takes_postings_in_whooshs_own_shape() -> None:
    pool = Pool()
    pool.add(("body", b"b", 0, 1.0, pack([3])))
    pool.gather(1, {"body": {"b": [4], "a": [0]}})
    assert list(pool.iter_postings()) == [
        ("body", b"a", ([1], [pack([0])])),
        ("body", b"b", ([0, 1], [pack([3]), pack([4])])),
    ]


def test_positions_are_packed_within_bounds() -> None:
    assert unpack(pack([0, 7, 300])) == (0, 7, 300)
    assert unpack(pack([5, 10**9])) == (5, MAX_POSITION)
    assert len(unpack(pack(list(range(1000))))) == 255
