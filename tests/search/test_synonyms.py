from sage.search.synonyms import built_in, with_team


def test_built_in_words_stand_for_each_other() -> None:
    words = built_in()
    assert "kubernetes" in words["k8s"]
    assert "k8s" in words["kubernetes"]
    assert all(word not in others for word, others in words.items())


def test_a_team_adds_its_own_both_ways() -> None:
    words = with_team({"Parcel": ("shipment", "K8S")})
    assert words["parcel"] == ("shipment", "k8s")
    assert words["shipment"] == ("parcel", "k8s")
    assert words["k8s"] == ("parcel", "shipment", "kubernetes")
