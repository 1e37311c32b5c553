# A room whose players greet each other, and which goes on when its host is gone. On any node.
extends Node

@export var player := ""   # each player needs another one; empty for a new one
@export var address := ""  # of any member, as another player's output shows it; empty to host

var peer := RoomMultiplayerPeer.new()


func _ready() -> void:
	peer.session_id = "our tea party"
	peer.secret = "our secret"
	peer.member_id = player
	peer.host_changed.connect(_on_host_changed)
	peer.session_failed.connect(func(code: int, text: String) -> void: print(text, " (", code, ")"))
	multiplayer.peer_connected.connect(_on_peer_connected)
	(multiplayer as SceneMultiplayer).max_sync_packet_size = 1100  # the longest unreliable packet
	if (peer.host() if address.is_empty() else peer.join(address)) != OK:
		return
	multiplayer.multiplayer_peer = peer
	print("others join at ", peer.room_address())


func _process(_delta: float) -> void:
	# Godot polls no peer that is disconnected; the next host is known by then.
	if peer.get_connection_status() == MultiplayerPeer.CONNECTION_DISCONNECTED:
		peer.poll()


func _exit_tree() -> void:
	multiplayer.multiplayer_peer = null
	peer.close()


func _on_peer_connected(id: int) -> void:
	hello.rpc_id(id, peer.room_member())


func _on_host_changed(host: String, is_this_member: bool) -> void:
	print("the host is ", "this player" if is_this_member else host)
	# Deferred: not inside the poll that has reported it.
	_resume.call_deferred()


func _resume() -> void:
	if peer.get_connection_status() != MultiplayerPeer.CONNECTION_DISCONNECTED:
		return  # A client that is still connecting asks the next host by itself.
	multiplayer.multiplayer_peer = null  # Godot ends the session with the previous host.
	if peer.resume() == OK:
		multiplayer.multiplayer_peer = peer


@rpc("any_peer", "reliable")
func hello(member: String) -> void:
	print(member, " is peer ", multiplayer.get_remote_sender_id())
