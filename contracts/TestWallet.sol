// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @title TestWallet: a contract wallet (ERC-1271) for development chains.
/// @notice It takes a signature of its owner's key for its own. Its mood makes it hostile in the ways that a wallet can be to whoever relies on its
/// word. It sends nothing by itself: what it holds moves by signed authorizations.
/// @dev A key may delegate to its code (EIP-7702). Then the storage is the key's, where nothing was written: no owner means the account's own key.
contract TestWallet {
    /// What the wallet answers. Whatever is not Honest is a wallet's lie or its attack.
    enum Mood {
        Honest, // zero, so that an account that delegated is honest
        Burning, // takes all the gas that there is
        TwoFaced, // says yes while it is simulated, where gas costs nothing, and no on the chain
        Reentering, // tries to move the money once more while it is asked, and says yes
        Flooding // answers with more than the asker has the gas to read
    }

    address public owner;
    Mood public mood;

    constructor(address owner_, Mood mood_) {
        owner = owner_;
        mood = mood_;
    }

    /// ERC-1271. The first 65 bytes are the owner's r, s and v; what follows them is ignored, so that a signature can be longer than a key's.
    /// It is not a view, because an attacker's would not be either; tokens ask it by a static call.
    function isValidSignature(bytes32 digest, bytes calldata signature) external returns (bytes4) {
        if (mood == Mood.Burning) {
            while (true) {}
        }
        if (mood == Mood.Flooding) {
            assembly ("memory-safe") {
                return(0, 250000)
            }
        }
        if (mood == Mood.TwoFaced) {
            return tx.gasprice == 0 ? this.isValidSignature.selector : bytes4(0);
        }
        if (mood == Mood.Reentering) {
            (bool moved,) = msg.sender.call{gas: 20000}(abi.encodeWithSignature("transfer(address,uint256)", owner, 1));
            moved; // whether it did is for the books to show
            return this.isValidSignature.selector;
        }
        return _signed(digest, signature) ? this.isValidSignature.selector : bytes4(0);
    }

    function _signed(bytes32 digest, bytes calldata signature) private view returns (bool) {
        if (signature.length < 65) {
            return false;
        }
        address signer =
            ecrecover(digest, uint8(signature[64]), bytes32(signature[0:32]), bytes32(signature[32:64]));
        return signer != address(0) && signer == (owner == address(0) ? address(this) : owner);
    }
}
